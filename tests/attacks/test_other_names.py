"""A denying rule knows the files that it names: under another name they are the same programs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.harness import Sigwrap
from tests.support.policies import policy

BUSYBOX = shutil.which("busybox")
RULES = """
  - {name: no-tool, commands: [tool], decision: deny}
  - {name: no-rm, commands: [rm], args_patterns: [^never$], decision: deny}
"""
APPROVED = "\n  - {name: ask-tool, commands: ['tool*'], decision: approve}\n"


@pytest.fixture
def placed(as_user: Sigwrap, compiled: Path) -> Sigwrap:
    """With a program on PATH, which rules call `tool`."""
    folder = as_user.folder / "bin"
    folder.mkdir()
    shutil.copy(compiled / "stays", folder / "tool")
    if as_user.user is not None:
        for path in (folder, folder / "tool"):
            os.chown(path, as_user.user, as_user.user)
    as_user.env["PATH"] += f":{folder}"
    return as_user


def _run(subject: Sigwrap, command: str, rules: str = RULES) -> tuple[bytes, list[str]]:
    options = ("--approvals", "deny", "-p", policy(subject.folder, rules))
    line = (*options, "--", "sh", "-c", f"{command}; echo $?")
    done = subject.run(*line, cwd=str(subject.folder))
    assert done.stdout, done.stderr
    return done.stdout, [each.payload["rule_name"] for each in subject.events("exec_denied")]


MADE = (
    "ln bin/tool x",
    "cp bin/tool x",
    "cp bin/tool x; mv x y; ln y x",
    "cat bin/tool > bin/x; chmod +x bin/x; ln -s bin/x x",
    "cp bin/tool x; chmod 111 x",
    "cp bin/tool y; chmod +x y; printf '#!%s\\n' $PWD/y > x; chmod +x x",
    "mv bin/tool x",
)


def test_under_another_name(placed: Sigwrap) -> None:
    """Also one that was made before the run."""
    os.link(placed.folder / "bin" / "tool", placed.folder / "link")
    shutil.copy(placed.folder / "bin" / "tool", placed.folder / "copy")
    each = "; ".join(f"{made}; ./x; echo $?; rm -f x y" for made in MADE)
    said, rules = _run(placed, f"./link; echo $?; ./copy; echo $?; {each}; :")
    assert said.split() == [b"126"] * (2 + len(MADE)) + [b"0"], said
    assert rules == ["no-tool"] * (2 + len(MADE))


def test_what_asks_for_approval_asks_for_its_copy_and_the_event_says_what_it_is(
    placed: Sigwrap,
) -> None:
    assert _run(placed, "cp bin/tool x; ./x", APPROVED) == (b"126\n", ["ask-tool"])
    (event,) = placed.sealed_events("exec_denied")
    own, original = event.payload["programs"]
    assert own["path"] == str(placed.folder / "x")
    tool = str(placed.folder / "bin" / "tool")
    assert (original["path"], original["counts_by_name"]) == (tool, True)


def test_another_program_of_the_same_size_is_another(placed: Sigwrap, compiled: Path) -> None:
    data = (compiled / "stays").read_bytes()
    other = placed.folder / "other"
    other.write_bytes(data.replace(b"push", b"pull"))
    other.chmod(0o755)
    assert _run(placed, "./other") == (b"0\n", [])


@pytest.mark.skipif(BUSYBOX is None, reason="needs busybox")
def test_a_file_of_many_names_goes_by_the_one_that_it_is_called(placed: Sigwrap) -> None:
    """`ls` of a copied busybox is not `rm`, which the original may be as well."""
    assert BUSYBOX is not None
    (placed.folder / "bin" / "rm").symlink_to(BUSYBOX)
    shutil.copy(BUSYBOX, placed.folder / "ls")
    shutil.copy(BUSYBOX, placed.folder / "box")
    assert _run(placed, "./ls never 2>/dev/null") == (b"1\n", [])
    _, rules = _run(placed, "cp ls rm; ./rm never; echo $?; exec -a busybox ./box rm never")
    assert rules[:1] == ["no-rm"]


@pytest.mark.skipif(BUSYBOX is None, reason="needs busybox")
def test_a_copied_wrapper_still_wraps(placed: Sigwrap, programs: Path) -> None:
    """It runs the other program without an exec, so that has to be seen here."""
    loader = os.path.realpath("/lib64/ld-linux-x86-64.so.2")
    assert _run(placed, f"cp {loader} x; ./x bin/tool") == (b"126\n", ["no-tool"])
    assert _run(placed, f"cp bin/tool x; {loader} ./x") == (b"126\n", ["no-tool"])
