"""One event in a few words."""

from __future__ import annotations

from typing import Any

from sigwrap.escape import printable, shell_words
from sigwrap.events import EXEC_TYPES, SIGNAL_TYPES, Event, texts

_DETAIL_CHARACTERS_SHOWN = 400


def detail(event: Event) -> str:
    payload = event.payload
    if event.type in EXEC_TYPES:
        argv = texts(payload.get("argv")) or [str(payload.get("path") or "?")]
        detail = f"{_text(payload, 'decision')}  {shell_words(argv)}"
        if "approval_id" in payload:
            detail += f"  approval_id={_text(payload, 'approval_id')}"
        if "shadows" in payload:
            detail += f"  shadows {_text(payload, 'shadows')}"
    elif event.type in SIGNAL_TYPES:
        detail = (
            f"{_text(payload, 'decision')}  {_text(payload, 'signal_name')}  "
            f"{_text(payload, 'source_cmd')} -> "
            f"{_text(payload, 'target_pid')} {_text(payload, 'target_cmd')} "
            f"({_text(payload, 'target_type')})"
        )
    elif event.type == "io_recorded":
        detail = f"{_text(payload, 'stream')}  {_text(payload, 'size')} B  {_content(payload)}"
    else:
        detail = "  ".join(
            f"{printable(name)}={_value(value)}"
            for name, value in payload.items()
            if value not in (None, "", [], {})
        )
    if len(detail) > _DETAIL_CHARACTERS_SHOWN:
        return detail[:_DETAIL_CHARACTERS_SHOWN] + "..."
    return detail


def _content(payload: dict[str, Any]) -> str:
    text = payload.get("text")
    return "(binary)" if text is None else printable(str(text)[:_DETAIL_CHARACTERS_SHOWN])


def _text(payload: dict[str, Any], field: str) -> str:
    value = payload.get(field)
    return "?" if value is None else printable(str(value))


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{shell_words(map(str, value))}]"
    if isinstance(value, dict):
        return f"[{' '.join(f'{printable(str(key))}={_value(value[key])}' for key in value)}]"
    return printable(str(value))
