from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sigwrap.escape import columns_of, printable
from sigwrap.policy.tools.literal import yaml_list
from sigwrap.report.forms.layout import cut, wrapped, yaml_wrapped

LINES = st.text().map(printable)
COLUMNS = st.integers(min_value=16, max_value=120)


@given(LINES, COLUMNS)
def test_no_row_is_wider_than_the_terminal_and_nothing_is_lost(line: str, columns: int) -> None:
    rows = list(wrapped(line, columns, "  "))
    assert max(map(columns_of, rows), default=0) <= columns
    assert "".join(rows).replace(" ", "") == line.replace(" ", "")


@given(LINES, COLUMNS)
def test_a_line_that_is_cut_fits(line: str, columns: int) -> None:
    assert columns_of(cut(line, columns)) <= columns


@pytest.mark.parametrize("line", ["", "a " * 100])
def test_without_a_width_a_line_stays_as_it_is(line: str) -> None:
    assert list(wrapped(line, 0)) == [line] == [cut(line, 0)]


def test_a_line_is_broken_between_words() -> None:
    assert list(wrapped("one two three four five", 16, "  ")) == ["one two three", "  four five"]


RULE = (
    '- {name: allow-rm, commands: [rm], args_patterns: ["^-rf /etc, # and$", "^-rf  /root$"], '
    "decision: allow}  # also matches similar arguments"
)


def test_a_rule_is_broken_between_its_items_and_its_comment_comes_first() -> None:
    assert list(yaml_wrapped(f"  {RULE}", 50)) == [
        "  # also matches similar arguments",
        "  - {name: allow-rm, commands: [rm],",
        '      args_patterns: ["^-rf /etc, # and$",',
        '      "^-rf  /root$"], decision: allow}',
    ]
    assert (
        list(yaml_wrapped(f"  {RULE}", 0)) == [f"  {RULE}"] == list(yaml_wrapped(f"  {RULE}", 200))
    )
    comment = f"    # {'for some of them ' * 5}"
    assert all(row.startswith("    # ") for row in yaml_wrapped(comment, 60))


@given(st.lists(st.text(), min_size=1), COLUMNS)
def test_a_rule_means_the_same_however_it_is_broken(words: list[str], columns: int) -> None:
    line = f"- {{name: x, args_patterns: {yaml_list(words)}, decision: allow}}"
    rows = list(yaml_wrapped(f"  {line}  # it's said", columns))
    assert yaml.safe_load("\n".join(rows)) == yaml.safe_load(line)
