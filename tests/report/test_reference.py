from __future__ import annotations

from pathlib import Path

from sigwrap.events import EVENT_TYPES
from sigwrap.report.reference import reference


def test_docs_events_md_is_what_the_registry_says() -> None:
    documented = Path(__file__).parents[2] / "docs" / "events.md"
    assert documented.read_text(encoding="utf-8") == reference(), (
        "run python -m sigwrap.report.reference > docs/events.md"
    )


def test_every_type_and_field_is_in_the_reference() -> None:
    text = reference()
    for kind in EVENT_TYPES.values():
        line = next(line for line in text.splitlines() if line.startswith(f"| `{kind.name}` "))
        assert all(f"`{field}`" in line for field in kind.fields)
