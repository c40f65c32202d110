"""Verify Ed25519 signatures (RFC 8032, 5.1). A run verifies one, in 5 ms.

Each number and point has one encoding only, and a key of small order, for which anyone can sign, is
refused. The time depends on the values, since all of them are public.
"""

from __future__ import annotations

from sigwrap.bare import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import sha512
else:
    try:
        from _sha512 import sha512
    except ImportError:  # Python 3.12
        from _sha2 import sha512

_PRIME = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _PRIME) % _PRIME
_ROOT_OF_MINUS_ONE = pow(2, (_PRIME - 1) // 4, _PRIME)
_SIGN = 1 << 255

Point = tuple[int, int, int, int]  # x·z, y·z, z and x·y·z

_NEUTRAL = (0, 1, 1, 0)


def verifies(key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether the private key of this public key has signed the message."""
    public = _decoded(key)
    scalar = int.from_bytes(signature[32:], "little")
    if public is None or len(signature) != 64 or scalar >= _ORDER or _has_small_order(public):
        return False
    digest = sha512(signature[:32] + key + message).digest()
    factor = int.from_bytes(digest, "little") % _ORDER
    x, y, z, t = public
    return _encoded(_combined(scalar, _BASE, factor, (-x, y, z, -t))) == signature[:32]


def _decoded(encoded: bytes) -> Point | None:
    """Return None if it is not the encoding of a point."""
    number = int.from_bytes(encoded, "little")
    y = number & _SIGN - 1
    if len(encoded) != 32 or y >= _PRIME:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _PRIME) % _PRIME
    x = pow(square, (_PRIME + 3) // 8, _PRIME)
    if x * x % _PRIME != square:
        x = x * _ROOT_OF_MINUS_ONE % _PRIME
    is_negative = number >= _SIGN
    if x * x % _PRIME != square or (x == 0 and is_negative):
        return None
    x = _PRIME - x if x & 1 != is_negative else x
    return x, y, 1, x * y % _PRIME


def _encoded(point: Point) -> bytes:
    inverse = pow(point[2], -1, _PRIME)
    x, y = point[0] * inverse % _PRIME, point[1] * inverse % _PRIME
    return (y | (x & 1) * _SIGN).to_bytes(32, "little")


def _sum(one: Point, other: Point) -> Point:
    a = (one[1] - one[0]) * (other[1] - other[0]) % _PRIME
    b = (one[1] + one[0]) * (other[1] + other[0]) % _PRIME
    c = 2 * one[3] * other[3] * _D % _PRIME
    d = 2 * one[2] * other[2] % _PRIME
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _PRIME, g * h % _PRIME, f * g % _PRIME, e * h % _PRIME


def _combined(first: int, one: Point, second: int, other: Point) -> Point:
    """Return first·one + second·other."""
    terms = (None, one, other, _sum(one, other))
    found = _NEUTRAL
    for bit in reversed(range(max(first.bit_length(), second.bit_length()))):
        found = _sum(found, found)
        if term := terms[(first >> bit & 1) + 2 * (second >> bit & 1)]:
            found = _sum(found, term)
    return found


def _has_small_order(point: Point) -> bool:
    for _ in range(3):
        point = _sum(point, point)
    return point[0] == 0 and point[1] == point[2]


_BASE = _decoded(bytes([0x58, *[0x66] * 31])) or _NEUTRAL
