"""The process tree for a terminal, one line for each node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from sigwrap.events import ALLOWED, AUDITED
from sigwrap.report.folds.summary import Summary
from sigwrap.report.folds.tree import FORKED, IN_PLACE, REFUSED, Node, words
from sigwrap.report.forms.layout import Style, cut
from sigwrap.text import printable, shell_words

_LINES_SHOWN = 60
_DEEPEST_INDENT = 20
_NARROWEST_COMMAND = 16


def tree_title(summary: Summary) -> str:
    in_tree, alive = sum(each.processes for each in summary.tree), summary.processes.running
    known = summary.processes.processes
    count = str(known) if in_tree == known else f"{in_tree} of {known}"  # the rest isn't selected
    return f"Processes ({count}{f', {alive} {_alive(summary)}' if alive else ''})"


def tree_lines(summary: Summary, style: Style, columns: int) -> Iterator[str]:
    chosen = _chosen(summary.tree, _LINES_SHOWN)
    alive = _alive(summary)
    for line in chosen:
        yield _shown(line, alive, style, columns)
    hidden = len(summary.tree) - len(chosen) + summary.processes.not_shown
    if hidden:
        yield f"... {hidden} more lines (--process PID shows a part of the tree)"


def _alive(summary: Summary) -> str:
    """Return the word for processes whose end was not seen."""
    return "with no recorded end" if summary.is_over else "running"


def _chosen(tree: Sequence[Node], room: int) -> list[Node]:
    """Return all lines if there is room; otherwise those where something went wrong, with their
    ancestors, and as many others as fit."""
    if len(tree) <= room:
        return list(tree)
    above: list[int] = []
    chosen: set[int] = set()
    for place, line in enumerate(tree):
        del above[line.depth :]
        above.append(place)
        if _is_remarkable(line) and len(chosen.union(above)) <= room:
            chosen.update(above)
    plain = (place for place in range(len(tree)) if place not in chosen)
    chosen.update(islice(plain, room - len(chosen)))
    return [tree[place] for place in sorted(chosen)]


def _is_remarkable(line: Node) -> bool:
    became = any(name not in (ALLOWED, AUDITED) for name in line.outcomes)
    return bool(became or line.failed or line.killed or line.not_started or line.running)


def _shown(line: Node, alive: str, style: Style, columns: int) -> str:
    indent = "  " * min(line.depth, _DEEPEST_INDENT)
    deeper = f"[{line.depth} deep] " if line.depth > _DEEPEST_INDENT else ""
    arrow = "=> " if line.kind == IN_PLACE else ""
    notes = _notes(line, alive)
    after = f"  ({printable(', '.join(notes))})" if notes else ""
    before = f"{indent}{deeper}{arrow}{line.first_pid} "
    room = columns - len(before) - len(after) if columns else 0
    command = shell_words(words(line.command))
    if columns:
        command = cut(command, max(room, _NARROWEST_COMMAND))
    if line.kind == REFUSED:
        after = style.bad(after)
    return before + command + after


def _notes(line: Node, alive: str) -> list[str]:
    notes = [] if line.count == 1 else [f"x{line.count}"]
    if line.kind == FORKED:
        notes.append("only forked")
    if line.running:
        notes.append(f"{line.running} {alive}" if line.count > 1 else alive)
    if line.failed:
        notes.append(f"{line.failed} failed" if line.count > 1 else "failed")
    if line.not_started:
        notes.append("not started" if line.count == 1 else f"{line.not_started} not started")
    for outcome, count in line.outcomes.items():
        if outcome not in (ALLOWED, AUDITED):
            notes.append(outcome if count == line.count else f"{count} {outcome}")
    return notes + [f"{count} killed by {name}" for name, count in line.killed.items()]
