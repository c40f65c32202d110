"""The numbers of calls, by machine, are those of the kernel's own headers and of libseccomp."""

from __future__ import annotations

import subprocess
from functools import cache

import pyseccomp
import pytest

from sigwrap.calls import AARCH64, ARCHES, I386, TABLE, X86_64, by_number
from sigwrap.machine import NUMBERS_BY_ARCH, numbers_of, numbers_on
from tests.support.programs import needs

# What of its table aarch64's own header asks for (asm/unistd.h); it has nothing beside that.
_ASKED_BY_AARCH64 = (
    *("RENAMEAT", "NEW_STAT", "SET_GET_RLIMIT", "TIME32_SYSCALLS", "SYS_CLONE3", "MEMFD_SECRET"),
)
_HEADERS = {
    X86_64: "asm/unistd_64.h",
    I386: "asm/unistd_32.h",
    AARCH64: "asm-generic/unistd.h",
}
_LIBSECCOMP = {
    X86_64: pyseccomp.Arch.X86_64,
    I386: pyseccomp.Arch.X86,
    AARCH64: pyseccomp.Arch.AARCH64,
}
_NEWEST_THAT_HEADERS_HAVE = 450  # those of Debian bookworm


_COLUMNS = (X86_64, I386, AARCH64)


def ours(arch: int) -> dict[str, int | None]:
    """Of all calls that the sources know, on this architecture."""
    column = _COLUMNS.index(arch)
    return {name: numbers[column] for name, numbers in NUMBERS_BY_ARCH.items()}


@cache
def in_headers(arch: int, names: tuple[str, ...]) -> dict[str, int | None]:
    defined = "".join(f"#define __ARCH_WANT_{each}\n" for each in _ASKED_BY_AARCH64)
    text = f"{defined}#include <{_HEADERS[arch]}>\n" + "".join(f"= __NR_{n}\n" for n in names)
    done = subprocess.run(
        ("gcc", "-E", "-P", "-"), input=text, capture_output=True, text=True, check=True
    )
    found = [line.removeprefix("= ") for line in done.stdout.splitlines() if line.startswith("= ")]
    return {
        name: int(word) if word.isdecimal() else None
        for name, word in zip(names, found, strict=True)
    }


@needs("gcc")
@pytest.mark.parametrize("arch", [X86_64, I386, AARCH64])
def test_each_number_is_that_of_the_kernels_headers(arch: int) -> None:
    known = {
        name: each
        for name, each in ours(arch).items()
        if each is None or each <= _NEWEST_THAT_HEADERS_HAVE
    }
    assert len(known) > 60
    assert in_headers(arch, tuple(known)) == known


@pytest.mark.parametrize("arch", [X86_64, I386, AARCH64])
def test_each_number_is_that_of_libseccomp(arch: int) -> None:
    """Where it has a call only by another (i386's socketcall), or not yet, it says so by a number
    below 0."""
    compared = 0
    for name, each in ours(arch).items():
        try:
            theirs = pyseccomp.resolve_syscall(_LIBSECCOMP[arch], name)
        except (OSError, ValueError, RuntimeError):
            theirs = -1
        if theirs >= 0:
            assert theirs == each, name
            compared += 1
        elif each is not None:
            assert each >= 424 or arch == I386, name
    assert compared > 60


def test_what_this_machine_has_not_is_looked_for_under_no_number() -> None:
    assert numbers_of("poll", "ppoll") == {7, 271}
    elsewhere = numbers_on(aarch64=True)
    assert elsewhere["poll"] == elsewhere["select"] == elsewhere["epoll_wait"] == -1
    ours = numbers_on(aarch64=False)
    assert {name for name in ours if ours[name] < 0} == {"fcntl64", "socketcall", "truncate64"}


def test_each_call_is_found_by_its_architecture() -> None:
    assert ARCHES == (X86_64, I386)
    found = by_number(TABLE, (AARCH64,))
    assert set(found) == {AARCH64}
    assert found[AARCH64][221].name == "execve" and found[AARCH64][117].name == "ptrace"
    missing = {call.name for call in TABLE if call.aarch64 is None}
    assert missing == {
        *("fork", "vfork", "open", "creat", "unlink", "rmdir", "rename", "mkdir", "link"),
        *("symlink", "mknod", "fcntl64", "truncate64", "socketcall"),
    }
