"""A path names a file in sigwrap's own mounts. In a caller's own it can be any other: what is there
is allowed by no path and no name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.programs import script

BY_DESCRIPTOR = ("native", "native at 9", "i386", "i386 at 9")
BY_NAME = """
  - {name: no-first, commands: [first], decision: deny}
  - {name: good, commands: [good, "%(folder)s/go*"], decision: allow}
  - {name: attack, commands: [sh, execs, covers_a_file.py, python3, "python3.*"], decision: audit}
  - {name: rest, commands: ["*"], decision: deny}
"""
REDIRECTED = """
  - {name: r, commands: [first], decision: redirect, redirect_to: {command: %(folder)s/good}}
"""


@pytest.fixture
def placed(as_user: Sigwrap, compiled: Path) -> Sigwrap:
    for name in ("good", "evil", "first"):
        script(as_user.folder, name, f"#!/bin/sh\necho {name}\n")
    good, evil = str(as_user.folder / "good"), str(as_user.folder / "evil")
    natively = as_user.native(str(compiled / "execs"), "native", good, evil)
    if natively.stdout == b"no mounts\n":
        pytest.skip("needs user namespaces")
    assert natively.stdout == b"evil\n"
    return as_user


def _run(subject: Sigwrap, rules: str, *line: str) -> bytes:
    path = policy(subject.folder, rules % {"folder": subject.folder})
    return subject.run("-p", path, "--", *line).stdout


def _denied(said: bytes) -> bool:
    """By sigwrap, unless the kernel lets the session mount nothing at all."""
    return said == b"errno 13\n" or said == b"no mounts\n"


def test_of_a_mount_namespace_of_the_callers(placed: Sigwrap, compiled: Path) -> None:
    good, evil = str(placed.folder / "good"), str(placed.folder / "evil")
    for how in ("native", "i386"):
        assert _denied(_run(placed, BY_NAME, str(compiled / "execs"), how, good, evil)), how
        for event in placed.sealed_events("exec_denied"):
            assert event.payload["elsewhere"] is True
            assert event.payload["rule_name"] == "rest"


def test_of_a_descriptor_that_leads_there(placed: Sigwrap, compiled: Path, programs: Path) -> None:
    """The caller itself has sigwrap's own root and mounts."""
    good, evil = str(placed.folder / "good"), str(placed.folder / "evil")
    path = policy(placed.folder, BY_NAME % {"folder": placed.folder})
    execs = str(compiled / "execs")
    tries = "; ".join(f"{execs} '{how}' /proc/self/fd/9" for how in BY_DESCRIPTOR)
    line = placed.line("-p", path, "--", "sh", "-c", f"{tries}; :")
    covers = [*placed.as_user(), *PYTHON, str(programs / "covers_a_file.py"), evil, good]
    done = placed.start_line([*covers, *line])
    assert done.communicate()[0] == b"errno 13\n" * len(BY_DESCRIPTOR)
    denied = placed.sealed_events("exec_denied")
    assert len(denied) == len(BY_DESCRIPTOR)
    for event in denied:
        assert event.payload["elsewhere"] is True
        assert event.payload["programs"][0]["path"] == good


def test_a_denying_rule_holds_there(placed: Sigwrap, compiled: Path) -> None:
    first, evil = str(placed.folder / "first"), str(placed.folder / "evil")
    rules = "\n  - {name: no-first, commands: [first], decision: deny}\n"
    assert _denied(_run(placed, rules, str(compiled / "execs"), "native", first, evil))


def test_nothing_from_there_is_put_in_its_place(placed: Sigwrap, compiled: Path) -> None:
    first, evil = str(placed.folder / "first"), str(placed.folder / "evil")
    assert _denied(_run(placed, REDIRECTED, str(compiled / "execs"), "native", first, evil))
    for event in placed.sealed_events("exec_denied"):
        assert "another file than sigwrap's own" in event.payload["reason"]


def test_a_root_of_the_callers(sigwrap: Sigwrap) -> None:
    """A program takes its libraries from there, whatever file it is itself."""
    if os.getuid() != 0:
        pytest.skip("chroot needs root")
    script(sigwrap.folder, "good", "#!/evil\n")
    script(sigwrap.folder, "evil", "\x7fELF")
    enters = (
        f"import os; os.chroot({str(sigwrap.folder)!r}); os.chdir('/'); os.execv('good', ['x'])"
    )
    path = policy(sigwrap.folder, BY_NAME % {"folder": sigwrap.folder})
    done = sigwrap.run("-p", path, "--", *PYTHON, "-c", enters)
    assert b"PermissionError" in done.stderr
    (event,) = sigwrap.sealed_events("exec_denied")
    assert event.payload["elsewhere"] is True
