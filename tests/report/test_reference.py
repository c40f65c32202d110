from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

import sigwrap.report.query.reference as views_reference
import sigwrap.report.reference as events_reference
from sigwrap.events import EVENT_TYPES
from sigwrap.store.views import VIEWS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("name", "module"), [("events.md", events_reference), ("query.md", views_reference)]
)
def test_the_page_is_what_the_registry_says(name: str, module: ModuleType) -> None:
    documented = (DOCS / name).read_text(encoding="utf-8")
    assert documented == module.reference(), f"run python -m {module.__name__} > docs/{name}"


def test_each_field_with_a_note_is_in_an_event() -> None:
    fields = {field for kind in EVENT_TYPES.values() for field in kind.fields}
    assert set(events_reference.NOTES) <= fields
    assert "always false" in events_reference.NOTES["fallback"]


def test_the_overview_has_every_view_and_column_and_fits_the_terminal() -> None:
    text = views_reference.overview(60)
    for view in VIEWS.values():
        assert f"\n{view.name}: " in f"\n{text}"
    listed = text.partition("\nsigwrap query")[0]
    assert all(len(line) <= 60 for line in listed.splitlines())
