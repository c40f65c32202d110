"""The example in docs/report.md, and its picture: python -m tests.tools.report_example

Records demo/agent-session.sh anew. Pids, times and hashes are other ones each time, so nothing
holds the document equal; tests/docs/test_report_example.py holds it to what a new recording has.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.browser import Browser
from tests.support.long_session import DEMO

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "report.md"
PICTURE = ROOT / "docs" / "report.png"
SIGWRAP = ROOT / ".venv" / "bin" / "sigwrap"
_SYSTEM_S = "/usr/local/bin:/usr/bin:/bin"
_BETWEEN = re.compile("(<!-- begin: [^\n]* -->\n).*(<!-- end -->)", re.DOTALL)


def example(document: str) -> str:
    found = _BETWEEN.search(document)
    assert found is not None
    return found.group(0)


def recorded(store: Path, *words: str) -> str:
    line = [str(SIGWRAP), "report", "--store", str(store), "--utc", *words]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout


def record(store: Path, folder: Path) -> None:
    """The agent's project lies in `folder` while it runs."""
    environment = {"PATH": _SYSTEM_S, "TMPDIR": str(folder), "SIGWRAP": str(SIGWRAP)}
    subprocess.run(["sh", str(DEMO), str(store)], env=environment, capture_output=True, check=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        record(store, Path(tempfile.gettempdir()))
        text = recorded(store)
        recorded(store, "--format", "html", "-o", str(Path(folder) / "report.html"))
        with Browser(Path(folder) / "browser") as browser:
            tab = browser.tab(1280, 1000)
            tab.open((Path(folder) / "report.html").as_uri())
            tab.screenshot(PICTURE)
    old = DOCUMENT.read_text("utf-8")
    new = _BETWEEN.sub(lambda found: f"{found[1]}\n```text\n{text}```\n\n{found[2]}", old)
    DOCUMENT.write_text(new, "utf-8")
    sys.stdout.write(f"{DOCUMENT}, {PICTURE}\n")


if __name__ == "__main__":
    main()
