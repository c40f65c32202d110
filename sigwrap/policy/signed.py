"""A signed policy: its text, and on the last line an Ed25519 signature of all before that line.

One file instead of two: a server that is updated, or a cache in between, can't give a text with the
signature of another one.
"""

from __future__ import annotations

from binascii import a2b_base64

from sigwrap.errors import PolicyError, UsageError
from sigwrap.policy.ed25519 import verifies

_MARK = b"# signature: "
_BEGIN, _END = b"-----BEGIN PUBLIC KEY-----", b"-----END PUBLIC KEY-----"
_BEFORE_A_KEY = bytes.fromhex("302a300506032b6570032100")  # RFC 8410, 4
_HOW_TO_SIGN = (
    "to sign it: printf '# signature: %s\\n' \"$(openssl pkeyutl -sign -rawin -inkey KEY "
    '-in FILE | openssl base64 -A)" >> FILE'
)
_WANTED = "a public Ed25519 key is from: openssl pkey -in KEY -pubout"


def signed_text(data: bytes, key: bytes, name: str, key_file: str) -> str:
    """Return the text of the policy `name`. Raises PolicyError."""
    text, mark, rest = data.rpartition(_MARK)
    if not mark:
        raise PolicyError(f"{name}: it is not signed", _HOW_TO_SIGN)
    try:
        signature = a2b_base64(b"".join(rest.split()), strict_mode=True)
    except ValueError:
        signature = b""
    if not verifies(key, text, signature):
        raise PolicyError(
            f"{name}: its signature is not by the key in {key_file}",
            "the policy was changed after it was signed, or signed with another key",
        )
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise PolicyError(f"{name}: not UTF-8") from None


def public_key(content: bytes, key_file: str) -> bytes:
    """Return the 32 bytes of the key. Raises UsageError."""
    if b"PRIVATE" in content.split():
        why = f"--policy-key {key_file}: it is a private key, which belongs to the signer only"
        raise UsageError(why, f"to get the public one: openssl pkey -in {key_file} -pubout")
    try:
        body = a2b_base64(content.strip().removeprefix(_BEGIN).removesuffix(_END))
    except ValueError:
        body = b""
    key = body.removeprefix(_BEFORE_A_KEY)
    if len(key) != 32 or key == body:
        raise UsageError(f"--policy-key {key_file}: not a public Ed25519 key", _WANTED)
    return key
