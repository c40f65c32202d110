"""The screen in docs/watch.md, drawn by what draws it. python -m tests.docs.watch_screen --write"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

from sigwrap.watch.terminal.drawing import Size, drawn
from sigwrap.watch.terminal.state import ScreenState
from tests.watch.boards import NOW_NS, SECOND, board, line, request, seen

DOCUMENT = Path(__file__).parents[2] / "docs" / "watch.md"
_BLOCK = re.compile(r"(<!-- screen: [^\n]+ -->\n```text\n).*?(```)", re.DOTALL)


def screen() -> str:
    os.environ["TZ"] = "UTC"
    time.tzset()
    agent = seen("20261127-091500-83e1f8", name="agent", command=("claude", "-p", "ship it"))
    docs = seen(
        "20261127-091112-1c02b7",
        name="docs",
        command=("npm", "run", "build"),
        started_ns=NOW_NS - 320 * SECOND,
        processes=4,
        denied=0,
    )
    ended = seen("20261127-085800-77d001", command=("pytest", "-x"), state="ended", exit_status=1)
    question = request(
        session_id=agent.id,
        session_name="agent",
        process="bash",
        what="git push --force origin main",
    )
    other = request("b71c02", session_id=docs.id, what="npm install left-pad")
    state = ScreenState()
    state.take(board(agent, docs, ended._replace(processes=None), waiting=(question, other)))
    lines = [
        line(1, "denied", "curl http://198.51.100.7/x.sh  (rule no-downloads)"),
        line(2, "approved", "git commit -m 'Wait for the last one'  (rule ask-commit)"),
        line(3, "asked", "git push --force origin main  (rule ask-push)"),
    ]
    rows = drawn(state, lines, Size(80, 21), NOW_NS, "")
    return "".join(f"{row.text.rstrip()}\n" for row in rows)


def with_screen(text: str) -> str:
    return _BLOCK.sub(lambda found: found[1] + screen() + found[2], text)


def main() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    if "--write" in sys.argv:
        DOCUMENT.write_text(with_screen(text), encoding="utf-8")
    sys.stdout.write(screen())


if __name__ == "__main__":
    main()
