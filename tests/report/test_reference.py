from __future__ import annotations

from pathlib import Path

import sigwrap.report.query.reference as views_reference
import sigwrap.report.reference as events_reference
from sigwrap.events import EVENT_TYPES
from sigwrap.report.query.database import SEARCHED
from sigwrap.store.views import EXPORTED, VIEWS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_events_is_what_the_registry_says() -> None:
    documented = (DOCS / "events.md").read_text(encoding="utf-8")
    module = events_reference.__name__
    assert documented == events_reference.reference(), f"run python -m {module} > docs/events.md"


def test_the_page_of_views_is_what_they_say() -> None:
    documented = (DOCS / "query.md").read_text(encoding="utf-8")
    module = views_reference.__name__
    assert documented == views_reference.reference(documented), f"run {module} docs/query.md"
    exported = ", ".join(f"`{column.name}`" for column in EXPORTED.columns)
    searched = ", ".join(f"`{name}`" for name in SEARCHED)
    assert exported in documented and searched in documented


def test_each_field_with_a_note_is_in_an_event() -> None:
    fields = {field for kind in EVENT_TYPES.values() for field in kind.fields}
    assert set(events_reference.NOTES) <= fields
    assert "always false" in events_reference.NOTES["fallback"]


def test_the_overview_has_every_view_and_column_and_fits_the_terminal() -> None:
    text = "\n".join(views_reference.overview(60))
    for view in VIEWS.values():
        assert f"\n{view.name}: " in f"\n{text}"
    listed = text.partition("\nsigwrap query")[0]
    assert all(len(line) <= 60 for line in listed.splitlines())
