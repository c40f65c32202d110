"""The moving picture in README.md can be made again, and shows what a new recording shows."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.harness import UNDER_TEST
from tests.support.waiting import PATIENCE_S

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "demo" / "picture.py"
PICTURE = ROOT / "docs" / "demo.svg"
_SVG = "{http://www.w3.org/2000/svg}"
_MOST_BYTES = 300 * 1024


def shown(picture: str) -> str:
    """Return its text, line by line from the top."""
    lines: defaultdict[float, list[tuple[float, str]]] = defaultdict(list)
    for text in ElementTree.fromstring(picture).iter(f"{_SVG}text"):
        lines[float(text.attrib["y"])].append((float(text.attrib["x"]), text.text or ""))
    return "\n".join(" ".join(word for _, word in sorted(lines[y])) for y in sorted(lines))


def answers(picture: str) -> list[str]:
    """Return what the agent's commands printed, without numbers and line ends."""
    found = re.findall(r"\n(> .*?)(?=\nagent:)", shown(picture), re.DOTALL)
    return [re.sub(r"\d+", "N", " ".join(answer.split())) for answer in found]


def check(picture: str) -> None:
    """Fail unless it is small, loads nothing and shows nothing of the machine that made it."""
    assert len(picture.encode()) <= _MOST_BYTES
    root = ElementTree.fromstring(picture)
    assert root.attrib["aria-label"] == root.findtext(f"{_SVG}title")
    tags = {element.tag.removeprefix(_SVG) for element in root.iter()}
    assert tags == {"svg", "title", "style", "rect", "g", "text"}
    without_namespace = picture.replace(_SVG[1:-1], "")
    assert not re.search(r"https?:|url\(|@import|href|\bon\w+=", without_namespace)
    assert "infinite" in picture and "prefers-color-scheme:dark" in picture
    assert "@media(prefers-reduced-motion:reduce){.a{animation:none}}" in picture
    paths = re.findall(r"(?<![\w.])/[\w.-]+/[\w./-]*", shown(picture))
    assert set(paths) <= {"/tmp/shop/web"}
    assert not re.search(rf"\buid \d|\b{re.escape(socket.gethostname())}\b", shown(picture))


def test_a_new_picture_shows_denials_and_report_and_docs_have_the_same(tmp_path: Path) -> None:
    for program in ("git", "pkill"):
        if not shutil.which(program):
            pytest.skip(f"needs {program}")
    output = tmp_path / "demo.svg"
    line = [sys.executable, str(SCRIPT), str(output), "--sigwrap", UNDER_TEST, "--pause", "0.1"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=2 * PATIENCE_S)
    assert done.returncode == 0, done.stderr
    new = output.read_text("utf-8")
    check(new)

    pkill, push = answers(new)
    assert pkill.startswith('> pkill -f "node shop-server.js" sigwrap: denied: SIGTERM to N (node)')
    assert "(rule outside, policy agent-default)" in pkill
    assert push.startswith("> git push --force origin main sigwrap: denied: git push --force")
    assert "(rule force-push, policy agent-default)" in push
    end, _, report = shown(new).partition("^C")[2].partition(" ".join("sigwrapreport"))
    assert "exit 130" in end and "2 actions denied" in end
    assert "exit 130" in report and "SIGTERM to node" in report

    assert answers(PICTURE.read_text("utf-8")) == answers(new), "run: make picture"


def test_the_picture_in_docs_is_small_and_loads_nothing() -> None:
    check(PICTURE.read_text("utf-8"))
