"""The binary in other systems' root folders: small ones, or full ones by `make test-roots`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import roots
from tests.support.harness import Sigwrap

pytestmark = [
    pytest.mark.binary,
    pytest.mark.skipif(os.getuid() != 0, reason="needs root"),
]

IS_FULL = os.environ.get("SIGWRAP_TEST_ROOTS") == "full"
RELEASES = list(roots.RELEASES) if IS_FULL else ["bullseye", "trixie"]
NOBODY = 65534

POLICY = """
version: 1
name: in-a-root
extends: agent-observe
command_rules:
  - {name: no-id, commands: [id], decision: deny, message: no ids here}
"""
SCRIPT = """
export SIGWRAP_STORE=/tmp/store HOME=/tmp
/mnt/sigwrap --version || exit
/mnt/sigwrap -p /mnt/policy.yaml -- sh -c '
    id || echo denied $?; sleep 60 & kill -TERM $!; wait $!; echo signalled $?; kill -INT $$'
echo status $?
/mnt/sigwrap report >/tmp/report; echo report $?
while read -r line; do case $line in why*|execs*|signals*) echo "$line";; esac; done </tmp/report
/mnt/sigwrap verify >/dev/null; echo verified $?
/mnt/sigwrap policy check agent-default >/dev/null; echo checked $?
/mnt/sigwrap-forward -- sh -c 'exit 7'; echo forward $?
"""

BY_ZIPAPP = """
export SIGWRAP_STORE=/tmp/store HOME=/tmp
python3.13 -I /mnt/sigwrap.pyz -- sh -c 'exit 7'; echo status $?
python3.13 -I /mnt/sigwrap.pyz report
python3.13 -I /mnt/sigwrap.pyz policy explain -- sh -c 'git push --force'
"""

Enter = Callable[..., subprocess.CompletedProcess[str]]


def _root(make: Callable[[str], Path], release: str) -> Path:
    try:
        return make(release)
    except roots.CantBeMade as why:
        pytest.skip(f"can't make a root of {release}: {why}")


@pytest.fixture
def carried(binary: Path, tmp_path: Path) -> Path:
    """What is to be /mnt there."""
    folder = tmp_path / "mnt"
    folder.mkdir()
    shutil.copy(binary, folder)
    (folder / "sigwrap-forward").symlink_to("sigwrap")
    (folder / "policy.yaml").write_text(POLICY)
    folder.chmod(0o755)
    return folder


def _needed_glibc(binary: Path) -> tuple[int, int]:
    """By what its start loads, none of which is compressed."""
    minors = re.findall(rb"\0GLIBC_2\.(\d+)(?=[\0.])", binary.read_bytes())
    return 2, max(map(int, minors))


def _run(line: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        line,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin:/bin"},
    )


@pytest.mark.parametrize("user", [0, NOBODY])
@pytest.mark.parametrize("release", RELEASES)
def test_a_system_with_glibc(
    release: str, user: int, binary: Path, carried: Path, sigwrap: Sigwrap
) -> None:
    root = _root(roots.full if IS_FULL else roots.small, release)
    done = _run(roots.entered(root, carried, user, "sh", "-c", SCRIPT))
    if roots.RELEASES[release] < _needed_glibc(binary):
        assert re.search(r"version `GLIBC_2\.\d+' not found .* set TMPDIR\)\n$", done.stderr)
        assert (done.returncode, done.stdout) == (255, "")
        return
    version, *lines = done.stdout.splitlines()
    assert version.startswith("sigwrap "), done.stderr
    assert version.endswith(", with C extension")
    assert lines[:3] == ["denied 126", "signalled 143", "status 130"]
    assert lines[3] == "report 0"
    assert lines[4].startswith("why      exit 130: it sent itself SIGINT"), lines
    assert lines[-3:] == ["verified 0", "checked 0", "forward 7"], done.stderr
    assert "sigwrap: denied: id: no ids here (rule no-id, policy in-a-root)" in done.stderr

    command = ("/mnt/sigwrap", "-p", "/mnt/policy.yaml", "--", "sh", "-c", "echo ready; sleep 60")
    entered = roots.entered(root, carried, user, "env", "SIGWRAP_STORE=/tmp/store", *command)
    terminal = sigwrap.terminal_for(entered)
    terminal.output.until(rb"ready")
    terminal.press("C")
    assert terminal.await_status() == 130


def test_a_system_without_glibc(carried: Path) -> None:
    """Such as Alpine's: the kernel finds no loader, and the shell says what it says of that."""
    root = _root(roots.small, roots.WITHOUT_LIBC)
    done = _run(roots.entered(root, carried, NOBODY, "sh", "-c", "/mnt/sigwrap -- true"))
    assert done.stderr == "sh: /mnt/sigwrap: not found\n"
    assert done.returncode == 127


def test_another_python_runs_the_zipapp(zipapp: Path, carried: Path) -> None:
    """Its patterns and its parser of shell lines are there too."""
    shutil.copy(zipapp, carried)
    root = _root(roots.with_other_pythons, "trixie")
    done = _run(roots.entered(root, carried, NOBODY, "sh", "-c", BY_ZIPAPP))
    assert done.stderr == ""
    assert done.stdout.startswith("status 7\n")
    assert "exit 7" in done.stdout
    assert done.stdout.endswith("As an agent hook, sigwrap denies the line.\n")


@pytest.mark.parametrize("version", ["2.7", "3.9"])
def test_the_zipapp_tells_an_older_python_what_it_needs(
    zipapp: Path, carried: Path, version: str
) -> None:
    shutil.copy(zipapp, carried)
    root = _root(roots.with_other_pythons, "bullseye")
    done = _run(roots.entered(root, carried, NOBODY, f"python{version}", "/mnt/sigwrap.pyz"))
    said = f"sigwrap: needs Python 3.11 or newer; this is {version}\n"
    assert (done.returncode, done.stdout, done.stderr) == (125, "", said)
