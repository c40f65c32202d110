"""The program that waits for an approval: its machine code is what its listing says."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sigwrap.exec import replacements
from sigwrap.kernel import paths
from sigwrap.kernel.file_state import inode_of

# By the assembler's prefix on another machine.
ASSEMBLED = {"x86_64": replacements.X86_64, "aarch64": replacements.AARCH64}


@pytest.mark.parametrize("machine", ASSEMBLED)
def test_the_code_is_its_listing_assembled(tmp_path: Path, machine: str) -> None:
    prefix = "" if machine == os.uname().machine else f"{machine}-linux-gnu-"
    if shutil.which(f"{prefix}as") is None:
        pytest.skip("needs an assembler for that machine")
    listing = ASSEMBLED[machine]
    lines = [re.split(r" {2,}", line, maxsplit=1)[1] for line in listing.strip().splitlines()]
    syntax = ".intel_syntax noprefix" if machine == "x86_64" else ""
    texts = (
        f'name: .asciz "{replacements.NAME.decode()}"',
        f'text: .asciz "{replacements.TEXT.decode()[:-1]}"',
    )
    source, assembled, code = (tmp_path / name for name in ("stub.s", "stub.o", "code"))
    source.write_text("\n".join([syntax, *lines, *texts, ""]))
    subprocess.run([f"{prefix}as", "-o", assembled, source], check=True)
    subprocess.run([f"{prefix}objcopy", "-O", "binary", "-j", ".text", assembled, code], check=True)
    assert code.read_bytes().startswith(replacements.code_of(listing)[:-1])


def _run(*argv: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    fd = replacements.make_file()
    try:
        return subprocess.run(
            argv,
            executable=f"/proc/self/fd/{fd}",
            pass_fds=[fd],
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        os.close(fd)


def test_it_executes_what_its_arguments_name_with_its_environment() -> None:
    done = _run(
        "sigwrap-stub", "/bin/sh", "name", "-c", 'echo "$0 $A" "$@"', "x", "y", env={"A": "b"}
    )
    assert (done.stdout, done.returncode) == ("x b y\n", 0)


def test_what_the_kernel_refuses_is_said_but_for_what_sigwrap_has_said(tmp_path: Path) -> None:
    gone = _run("sigwrap-stub", str(tmp_path / "gone"), "gone")
    assert (gone.stderr, gone.returncode) == (replacements.TEXT.decode(), 126)
    assert _run("sigwrap-stub", str(tmp_path), "folder").returncode == 126
    assert _run("sigwrap-stub", str(tmp_path), "folder").stderr == ""


def test_its_file_is_sealed() -> None:
    fd = replacements.make_file()
    with pytest.raises(PermissionError):
        os.pwrite(fd, b"x", 0)
    assert fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_WRITE
    os.close(fd)


def test_a_search_of_the_caches_that_a_rename_disturbs_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disturbed = iter([errno.EAGAIN] * 3)

    def open_known(path: str, folder: int) -> int:
        for error in disturbed:
            raise OSError(error, os.strerror(error))
        return known(path, folder)

    known = paths.open_known
    monkeypatch.setattr(paths, "open_known", open_known)
    inode = inode_of(os.path.realpath(b"/usr/bin/env"))
    assert replacements._leads_to(b"/usr/bin/env", inode, os.getpid())
    assert not replacements._leads_to(b"/usr/bin/env/none", inode, os.getpid())
