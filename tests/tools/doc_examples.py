"""Run the examples of docs/tutorial.md and docs/commands.md, and write what they print into the
pages: python -m tests.tools.doc_examples

An example is a text block whose first line begins with `$ `. The examples of a page run in order,
on a terminal, in one project directory and one store. A block of code whose first line is a comment
with a file name becomes that file. A comment `<!-- while: LINE -->` before an example runs LINE in
the background until the example is over; LINE has to wait for an approval.

tests/docs/test_doc_examples.py compares the pages with a new run, without pids, times and hashes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.support.browser import Browser
from tests.support.harness import UNDER_TEST
from tests.support.long_session import DEMO
from tests.support.terminal import Terminal

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "tutorial.md", DOCS / "commands.md"]
PICTURE = DOCS / "report.png"
HOME = "/home/ann"  # shown in the place of the temporary one
_EXAMPLE = re.compile(
    r"(?:^<!-- while: (?P<while>[^\n]*) -->\n\n)?^```text\n(?P<lines>\$ .*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_FILE = re.compile(r"^```\w+\n(# ([\w-]+\.\w+)\n.*?)^```$", re.MULTILINE | re.DOTALL)
_BY = re.compile(r"(?:, \d+ s ago)?, by \S.* on \S+, in ", re.MULTILINE)
_SIZE = (200, 200)
_PATIENCE_S = 30.0


class Shown(NamedTuple):
    line: str
    output: str


class Machine:
    """A user's home directory with a project in it."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "ann"
        self.project = self.home / "shop"
        self.project.mkdir(parents=True)
        path = f"{Path(UNDER_TEST).parent}:/usr/local/bin:/usr/bin:/bin"
        self._env = {
            "PATH": path,
            "HOME": str(self.home),
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "SIGWRAP_PAGER": "cat",
        }

    def shown(self, line: str) -> Shown:
        terminal = Terminal(["sh", "-c", line], self._env, self.project, _SIZE)
        try:
            terminal.await_status(_PATIENCE_S)
            said = terminal.output.rest().decode()
        finally:
            terminal.close()
        return Shown(line, self._elsewhere(said.replace("\r\n", "\n")))

    def wait_beside(self, line: str) -> subprocess.Popen[bytes]:
        """Start the line, and return once its request can be approved."""
        process = subprocess.Popen(
            ["sh", "-c", line],
            env=self._env,
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + _PATIENCE_S
        while not self._requests():
            assert process.poll() is None and time.monotonic() < until, line
            time.sleep(0.05)
        return process

    def _requests(self) -> str:
        line = [UNDER_TEST, "approvals", "--json"]
        done = subprocess.run(
            line, env=self._env, cwd=self.project, capture_output=True, text=True, check=True
        )
        return done.stdout if '"id"' in done.stdout else ""

    def _elsewhere(self, text: str) -> str:
        return _BY.sub(", by ann (uid 1000) on laptop, in ", text.replace(str(self.home), HOME))


def examples(page: str) -> list[Shown]:
    return [shown for found in _EXAMPLE.finditer(page) for shown in _shown(found["lines"])]


def _shown(lines: str) -> list[Shown]:
    parts = re.split(r"^\$ ", lines, flags=re.MULTILINE)[1:]
    return [Shown(line, output) for line, _, output in (part.partition("\n") for part in parts)]


def tried(page: str) -> str:
    """Return the page with what its examples print now."""
    with tempfile.TemporaryDirectory(prefix="sigwrap-test-") as folder:
        machine = Machine(Path(folder))
        for content, name in _FILE.findall(page):
            (machine.project / name).write_text(content)

        def again(found: re.Match[str]) -> str:
            beside = found["while"] and machine.wait_beside(found["while"])
            try:
                done = [machine.shown(each.line) for each in _shown(found["lines"])]
            finally:
                if beside:
                    machine.shown("sigwrap deny")
                    beside.wait(_PATIENCE_S)
            text = "".join(f"$ {line}\n{output}" for line, output in done)
            return found[0].replace(found["lines"], text)

        return _EXAMPLE.sub(again, page)


def draw(picture: Path) -> None:
    """Take the picture of demo/agent-session.sh's report as a page."""
    with tempfile.TemporaryDirectory() as folder:
        store, page = Path(folder) / "store", Path(folder) / "report.html"
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "SIGWRAP": UNDER_TEST}
        subprocess.run(["sh", str(DEMO), str(store)], env=env, capture_output=True, check=True)
        words = ["--store", str(store), "--utc", "--format", "html", "-o", str(page)]
        subprocess.run([UNDER_TEST, "report", *words], check=True)
        here = os.uname()
        text = page.read_text("utf-8").replace(here.release, "6.12.63")
        page.write_text(text.replace(f'"host":"{here.nodename}"', '"host":"laptop"'), "utf-8")
        with Browser(Path(folder) / "browser") as browser:
            tab = browser.tab(1280, 1000)
            tab.open(page.as_uri())
            tab.screenshot(picture)


def main() -> None:
    for page in PAGES:
        page.write_text(tried(page.read_text("utf-8")), "utf-8")
    draw(PICTURE)
    sys.stdout.write(f"{', '.join(map(str, [*PAGES, PICTURE]))}\n")


if __name__ == "__main__":
    main()
