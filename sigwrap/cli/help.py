"""sigwrap help, sigwrap man: the pages of docs/, as text for a terminal, and the manual page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from sigwrap.cli.group import App
from sigwrap.cli.options import PagerOption
from sigwrap.cli.output import out
from sigwrap.cli.showing import columns, show_lines, style
from sigwrap.errors import UsageError
from sigwrap.report.forms.layout import PLAIN, Style, wrapped
from sigwrap.start.policy_files import packaged
from sigwrap.text import did_you_mean, shell_words

_INDEX = "README"
_TOPIC = re.compile(r"[a-z][a-z-]*")
_LINK = re.compile(r"!?\[([^\]]*)\]\(([^)]*)\)")
_CELL_END = re.compile(r"(?<!\\)\|")
_WIDEST_NAME = 28


app = App()


@app.command("help")
def show(
    context: typer.Context,
    topic: Annotated[
        str, typer.Argument(metavar="[TOPIC]", help="A page or a command [default: the list]")
    ] = "",
    no_pager: PagerOption = False,
) -> None:
    """Show a page of the documentation."""
    text = page(topic) if not topic or _TOPIC.fullmatch(topic) else ""
    root: Any = context.find_root()
    command = root.command.get_command(root, topic)
    if not text and command is not None:
        inner = type(context)(command, info_name=topic, parent=root)
        out(command.get_help(inner))
        return
    if not text:
        hint = did_you_mean(topic, topics()).rstrip() or "all topics: sigwrap help"
        raise UsageError(f"no help topic {shell_words([topic])}", hint)
    show_lines(as_text(text, columns(), style()), paged=not no_pager)


@app.command()
def man() -> None:
    """Print the manual page."""
    out(document("sigwrap.1").rstrip())


def topics() -> list[str]:
    return re.findall(r"\]\(([a-z-]+)\.md\)", page(""))


def page(topic: str) -> str:
    """Return the Markdown of a page, or an empty string."""
    return document(f"{topic or _INDEX}.md")


def document(name: str) -> str:
    """Return a file of docs/, or an empty string. The one-file build carries them packed."""
    try:
        import sigwrap_carried_pages  # type: ignore[import-not-found]
    except ImportError:
        try:
            return packaged("docs", name)
        except OSError:
            return ""
    return str(sigwrap_carried_pages.page(name))


def as_text(markdown: str, width: int = 0, style: Style = PLAIN) -> Iterator[str]:
    """Yield lines of at most `width` columns (0: of any length)."""
    is_block, table = False, list[list[str]]()
    for line in [*markdown.splitlines(), ""]:
        if line.startswith("|") and not is_block:
            table.append([_inline(each.strip()) for each in _CELL_END.split(line)[1:-1]])
            continue
        yield from _table(table, width)
        table = []
        if line.startswith("```"):
            is_block = not is_block
        elif is_block:
            yield f"    {line}".rstrip()
        elif line.startswith("#"):
            yield style.heading(_inline(line.lstrip("# ")))
        elif not line.startswith(("<!--", "![")):
            indent = re.match(r" *(?:[-*] |\d+\. )?", line)
            yield from wrapped(_inline(line), width, " " * len(indent[0] if indent else ""))


def _table(rows: list[list[str]], width: int) -> Iterator[str]:
    """Yield a row as its first cell, and the others beside or below it."""
    if len(rows) < 2:
        return
    head, _, *rows = rows
    name_width = min(max((len(row[0]) for row in rows), default=0), _WIDEST_NAME)
    for name, *rest in rows:
        if len(rest) == 1:
            said = rest[0]
        else:
            said = "; ".join(f"{a}: {b}" for a, b in zip(head[1:], rest, strict=False) if b)
        yield from wrapped(f"{name.ljust(name_width)}  {said}", width, " " * (name_width + 2))


def _inline(text: str) -> str:
    return _LINK.sub(_link, text).replace("**", "").replace("\\|", "|").replace("<br>", " ")


def _link(found: re.Match[str]) -> str:
    text, target = found[1], found[2].partition("#")[0]
    topic = target.removesuffix(".md")
    is_other_page = topic != target and "/" not in topic and topic != text.lower()
    return f"{text} ({topic})" if is_other_page else text
