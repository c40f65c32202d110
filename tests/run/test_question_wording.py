"""A question as its reader sees it."""

from __future__ import annotations

from typing import Any

import pytest

from sigwrap.approve.requests import ApprovalRequest, OpenRequest
from sigwrap.approve.wording import SessionHints, lines_of, store_option

SESSION = SessionHints("mine")


def _question(**different: Any) -> ApprovalRequest:
    values: dict[str, Any] = {
        "kind": "exec",
        "pid": 7,
        "process": "bash",
        "depth": 2,
        "what": "./deploy 'a b'",
        "rule": "ask",
        "message": "look",
        "key": (),
        "files": ("/project/deploy", "/usr/bin/bash"),
        "folder": "/project",
    }
    return ApprovalRequest(**(values | different))


def lines(**different: Any) -> list[str]:
    request = OpenRequest("3f9a10", _question(**different), asked_at_s=0.0, deadline_s=60.0)
    return lines_of(request, SESSION, 13.0)


def test_all_that_is_known_is_said() -> None:
    *said, deadline = lines(note="it has changed")
    assert said == [
        "sigwrap: request 3f9a10: bash (7) wants to run",
        "    ./deploy 'a b'",
        "  file /project/deploy, then /usr/bin/bash",
        "  directory /project",
        "  note it has changed",
        "  rule ask, policy mine: look",
    ]
    assert deadline.startswith("  expires at ")
    assert deadline.endswith(", in 47 s; then it is denied")


def test_a_signal_has_no_file() -> None:
    said = lines(kind="signal", what="SIGUSR2 to 50 (sleep)", files=(), folder="", message="")
    assert said[:-1] == [
        "sigwrap: request 3f9a10: bash (7) wants to send",
        "    SIGUSR2 to 50 (sleep)",
        "  rule ask, policy mine",
    ]


def test_what_is_cut_says_so_and_shows_its_end() -> None:
    said = lines(what="rm " + "a" * 5_000 + " /")
    text = "\n".join(said).replace("\n    | ", "")
    assert "a ... and 3505 more characters\n    its last characters: " + "a" * 198 in text
    assert "a /\n" in text
    assert "\n  in full: sigwrap watch --full 3f9a10\n  rule ask, policy mine" in text


def test_long_paths_are_cut_in_the_middle_and_many_are_counted() -> None:
    deep = "/a" * 1_000
    said = lines(folder=deep, files=("/bin/ls",) * 9)
    text = "\n".join(said).replace("\n    | ", "")
    start, end = "/a" * 75, "/a" * 75
    assert f"\n  directory {start} ... 1700 more characters ... {end}\n" in text
    assert "then /bin/ls, then 3 more\n" in text
    assert text.count("/bin/ls") == 6
    assert "\n  in full: sigwrap watch --full 3f9a10\n" in text


def test_no_question_is_larger_than_a_terminal_takes() -> None:
    for char in ["\udcff", "\u202e", "\U000e0001", "😀", "\n"]:
        words = char * 20_000
        said = lines(
            what=words, runs=words, loads=words, folder=words, files=(words,) * 50, note=words
        )
        assert sum(len(f"{line}\r\n".encode()) for line in said) < 45_000, char


def test_words_from_right_to_left_are_named() -> None:
    for field in ["what", "runs", "folder", "files", "note"]:
        hebrew = "cp \u05d0 \u05d1"
        said = lines(**{field: (hebrew,) if field == "files" else hebrew})
        assert "  note it has right-to-left letters" in "\n".join(said)
        assert "right to left" not in "\n".join(
            lines(**{field: ("é",) if field == "files" else "é"})
        ), field


@pytest.mark.parametrize("field", ["what", "folder", "note", "files", "process"])
def test_no_word_fills_a_row_with_a_line_that_looks_like_ours(field: str) -> None:
    """Neither by its length, nor with characters that are two columns wide."""
    for columns in [0, 1, 20, 40, 80, 10_000]:
        shown = min(max(columns or 80, 20), 80)
        for padding in (" ", "x", "日", "e\u0301"):
            fake = (
                f"npm ci{padding * 200}sigwrap: request 3f9a11: sh (8) wants to run  file /bin/ls"
            )
            request = OpenRequest(
                "3f9a10", _question(**{field: (fake,) if field == "files" else fake}), 0, 60
            )
            said = lines_of(request, SESSION, 13.0, columns)
            assert [line for line in said if line.startswith("sigwrap:")] == said[:1]
            assert sum(line.startswith("  file ") for line in said) == 1
            for line in said[:-2]:  # the policy's own line, and the deadline
                if line.startswith("  in full: "):
                    continue  # a command to copy
                assert len(line) + sum(not char.isascii() for char in line) <= shown


def test_nothing_can_be_faked_by_a_name() -> None:
    said = lines(
        process="x\r\nsigwrap:",
        what="ls\x1b[2J",
        files=("/tmp/a, then /usr/bin/ls",),
        folder="/tmp/\x9b2J\n  rule harmless",
        rule="r\x1b",
        message="\u202e",
        note="\n",
    )
    assert said[:-1] == [
        "sigwrap: request 3f9a10: $'x\\r\\nsigwrap:' (7) wants to run",
        "    ls\\e[2J",
        "  file '/tmp/a, then /usr/bin/ls'",
        "  directory $'/tmp/\\u009b2J\\n  rule harmless'",
        "  note \\n",
        "  rule r\\e, policy mine: \\u202e",
    ]


def test_commands_name_the_store_where_they_would_look_elsewhere() -> None:
    home = {"HOME": "/home/a"}
    assert store_option("/home/a/.local/state/sigwrap", home) == ""
    assert store_option("/srv/my store", home) == "--store '/srv/my store'"
    assert store_option("/srv/x", {**home, "SIGWRAP_STORE": "/srv/x"}) == "--store /srv/x"
    assert store_option("/srv/x", {"HOME": "nowhere"}) == "--store /srv/x"
    session = SessionHints("mine", "--store /srv/x")
    assert session.command("approve", "3f9a10") == "sigwrap approve 3f9a10 --store /srv/x"
