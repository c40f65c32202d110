"""A picture of a screen, made smaller: with the few colours that one has, as a palette."""

from __future__ import annotations

import struct
import zlib

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MOST_COLOURS = 256


def smaller(png: bytes) -> bytes:
    """Of one with 8 bits of each colour, as Chromium makes them."""
    width, height, rows = _rows(png)
    pixels = [[row[at : at + 3] for at in range(0, width * 3, 3)] for row in rows]
    counts: dict[bytes, int] = {}
    for row in pixels:
        for colour in row:
            counts[colour] = counts.get(colour, 0) + 1
    palette, numbers = _palette(counts)
    lines = b"".join(b"\0" + bytes(map(numbers.__getitem__, row)) for row in pixels)
    head = struct.pack("!IIBBBBB", width, height, 8, 3, 0, 0, 0)
    return _SIGNATURE + b"".join(
        _chunk(*each)
        for each in (
            (b"IHDR", head),
            (b"PLTE", b"".join(palette)),
            (b"IDAT", zlib.compress(lines, 9)),
            (b"IEND", b""),
        )
    )


def _palette(counts: dict[bytes, int]) -> tuple[list[bytes], dict[bytes, int]]:
    """The most frequent colours as they are, and for each other one the nearest of these."""
    palette = sorted(counts, key=lambda colour: -counts[colour])[:_MOST_COLOURS]
    numbers = {colour: at for at, colour in enumerate(palette)}
    for colour in counts:
        if colour not in numbers:
            numbers[colour] = min(range(len(palette)), key=lambda at: _far(palette[at], colour))
    return palette, numbers


def _far(one: bytes, other: bytes) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _rows(png: bytes) -> tuple[int, int, list[bytes]]:
    chunks = dict(_chunks(png))
    width, height, depth, kind, *_ = struct.unpack("!IIBBBBB", chunks[b"IHDR"])
    assert (depth, kind) in ((8, 2), (8, 6)), "neither RGB nor RGBA"
    size = 3 if kind == 2 else 4
    data = zlib.decompress(chunks[b"IDAT"])
    rows: list[bytes] = []
    above = bytes(width * size)
    for at in range(0, len(data), width * size + 1):
        above = _unfiltered(data[at], data[at + 1 : at + 1 + width * size], above, size)
        rows.append(above)
    if size == 4:
        rows = [bytes(each for at, each in enumerate(row) if at % 4 != 3) for row in rows]
    return width, height, rows


def _unfiltered(kind: int, line: bytes, above: bytes, size: int) -> bytes:
    """PNG 1.2, section 6."""
    row = bytearray(line)
    for at in range(len(row)):
        left = row[at - size] if at >= size else 0
        corner = above[at - size] if at >= size else 0
        match kind:
            case 1:
                guess = left
            case 2:
                guess = above[at]
            case 3:
                guess = (left + above[at]) // 2
            case 4:
                base = left + above[at] - corner
                guess = min((left, above[at], corner), key=lambda each: abs(base - each))
            case _:
                guess = 0
        row[at] = (row[at] + guess) & 0xFF
    return bytes(row)


def _chunks(png: bytes) -> list[tuple[bytes, bytes]]:
    """Those with the same name as one."""
    found: dict[bytes, bytes] = {}
    at = len(_SIGNATURE)
    while at < len(png):
        size, name = struct.unpack_from("!I4s", png, at)
        found[name] = found.get(name, b"") + png[at + 8 : at + 8 + size]
        at += size + 12
    return list(found.items())


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack("!I", len(data)) + name + data + struct.pack("!I", zlib.crc32(name + data))
