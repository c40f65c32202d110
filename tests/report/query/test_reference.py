from __future__ import annotations

from pathlib import Path

from sigwrap.report.query.reference import overview, reference
from sigwrap.report.query.views import VIEWS


def test_docs_query_md_is_what_the_views_say() -> None:
    documented = Path(__file__).parents[3] / "docs" / "query.md"
    assert documented.read_text(encoding="utf-8") == reference(), (
        "run python -m sigwrap.report.query.reference > docs/query.md"
    )


def test_the_overview_has_every_view_and_column_and_fits_the_terminal() -> None:
    text = overview(60)
    for view in VIEWS.values():
        assert f"\n{view.name}: " in f"\n{text}"
    listed = text.partition("\nsigwrap query")[0]
    assert all(len(line) <= 60 for line in listed.splitlines())
