"""The pictures of the page in the documents: python -m tests.watch.page.pictures docs"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.browser import Browser
from tests.support.png import smaller
from tests.watch.page.conftest import Served

SIZES = {
    "page-light": {"width": 1280, "height": 860},
    "page-dark": {"width": 1280, "height": 860, "dark": True},
    "page-narrow": {"width": 360, "height": 780},
}
BOARD: dict[str, Any] = {
    "sessions": [
        {
            "id": "20261127-101502-4f1a",
            "name": "agent",
            "command": ["claude", "-p", "make the tests pass, then push"],
            "processes": 11,
            "denied": 3,
            "asked": 2,
            "last": "git push --force origin main asked about",
        },
        {
            "id": "20261127-101733-09bc",
            "name": "docs",
            "command": ["npm", "run", "build"],
            "state": "stopped",
            "processes": 4,
            "last": "node scripts/build.js allowed",
        },
        {
            "id": "20261127-095811-77d0",
            "command": ["pytest", "-x"],
            "state": "ended",
            "denied": 1,
            "ended": "exited, status 1",
        },
    ],
    "waiting": [
        {
            "session": "20261127-101502-4f1a",
            "id": "3f2a",
            "what": "git push --force origin main",
            "runs": "/usr/lib/git-core/git",
            "message": "a forced push is left to people",
        },
        {
            "session": "20261127-101502-4f1a",
            "id": "8c01",
            "process": "node",
            "what": "rm -rf 'node_modules/.cache' build",
            "runs": "/usr/bin/rm",
            "message": "what removes folders is looked at",
            "may_always": False,
        },
    ],
}
LINES = [
    ["allowed", "bash -c 'make test' run by claude"],
    ["allowed", "make test"],
    ["audited", "cc -c src/queue.c"],
    ["allowed", "pytest tests/queue -x"],
    ["denied", "curl http://198.51.100.7/x.sh: no downloads (rule: no-fetch)"],
    ["redirected", "npm install → npm ci (rule: locked-install)"],
    ["approved", "git commit -m 'Queue: wait for the last one'"],
    ["denied", "kill -9 1: SIGKILL to systemd, which belongs to nobody here"],
    ["asked", "git push --force origin main"],
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
    served = Served(home / "store", "", dict(os.environ))
    try:
        served.tell(**board)
        served.tell(lines=[BOARD["sessions"][0]["id"], LINES * 4])
        tab = browser.tab(**size)
        tab.tell("Page.navigate", url=f"http://{served.host}{served.entry}")
        tab.until("document.querySelectorAll('.row').length > 9")
        if board.get("waiting"):
            tab.until("!document.querySelector('.question:last-child .yes').disabled")
            tab.press("j")
        tab.screenshot(file)
        file.write_bytes(smaller(file.read_bytes()))
    finally:
        served.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
