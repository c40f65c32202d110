"""Write JSON with json's own encoder, and import json only to read it, because that takes 2 ms."""

from __future__ import annotations

from collections.abc import Callable

from sigwrap.bare import Any

try:
    from _json import encode_basestring_ascii as _escape
    from _json import make_encoder as _make_encoder
except ImportError:  # this Python lacks the C versions
    from json.encoder import encode_basestring_ascii as _escape

    _make_encoder = None  # type: ignore[assignment,misc]


def encoder(
    *, separators: tuple[str, str] = (", ", ": "), sort_keys: bool = False, allow_nan: bool = True
) -> Callable[[object], str]:
    """Return an encoding function. JSONEncoder.encode makes a new encoder at each call."""
    if _make_encoder is None:
        import json

        return json.JSONEncoder(
            check_circular=False, separators=separators, sort_keys=sort_keys, allow_nan=allow_nan
        ).encode
    between, after_key = separators
    chunks = _make_encoder(
        None, _refuse, _escape, None, after_key, between, sort_keys, False, allow_nan
    )
    return lambda value: "".join(chunks(value, 0))


def _refuse(value: object) -> object:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


dumps = encoder()
dumps_sorted = encoder(sort_keys=True)


def loads(text: str | bytes | bytearray) -> Any:
    import json

    return json.loads(text)
