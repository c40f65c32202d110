from __future__ import annotations

import pytest

from sigwrap.cli import query, replay, report
from sigwrap.cli.options import chosen_format
from sigwrap.errors import UsageError

FORMATS = [
    (report.Format, report.Format.TEXT),
    (replay.Form, replay.Form.TEXT),
    (query.QueryFormat, query.QueryFormat.TABLE),
]


@pytest.mark.parametrize(("formats", "default"), FORMATS)
def test_json_is_another_word_for_the_format(
    formats: type[report.Format], default: report.Format
) -> None:
    assert chosen_format(None, default, as_json=False) is default
    assert chosen_format(None, default, as_json=True) is formats.JSON
    assert chosen_format(formats.JSON, default, as_json=True) is formats.JSON
    for other in formats:
        assert chosen_format(other, default, as_json=False) is other
        if other is not formats.JSON:
            said = f"--json and --format {other.value} exclude each other"
            with pytest.raises(UsageError, match=said):
                chosen_format(other, default, as_json=True)
