"""What a container keeps from who is in it: docker's default capabilities and seccomp profile."""

from __future__ import annotations

import errno
from pathlib import Path

import pyseccomp

_NAMES = Path(__file__).parents[1] / "containers" / "docker_default.txt"
_CAPABILITIES = """chown dac_override fsetid fowner mknod net_raw setgid setuid setfcap setpcap
net_bind_service sys_chroot kill audit_write""".split()
_PERSONALITIES = (0, 8, 0x20000, 0x20008, 0xFFFFFFFF)
_NEW_NAMESPACES = 0x7E020000
_OF_TRACERS = ("kcmp", "pidfd_getfd", "process_madvise")
_SOCKETS = ((pyseccomp.LT, 38), (pyseccomp.EQ, 39), (pyseccomp.GT, 40))


def as_dockers_root(*, may_trace: bool = False) -> list[str]:
    kept = [*_CAPABILITIES, *(["sys_ptrace"] if may_trace else [])]
    bounds = ",".join(["-all", *(f"+{name}" for name in kept)])
    return ["setpriv", f"--bounding-set={bounds}", "--inh-caps=-all", "--"]


def write_dockers_filter(path: Path, *, may_trace: bool = False) -> None:
    """As a program for the kernel. `may_trace`: as with --cap-add SYS_PTRACE."""
    rules = pyseccomp.SyscallFilter(pyseccomp.ERRNO(errno.EPERM))
    rules.add_arch(pyseccomp.Arch.X86)
    lines = _NAMES.read_text().splitlines()
    names = " ".join(line for line in lines if not line.startswith("#")).split()
    for name in {*names, "chroot", *(_OF_TRACERS if may_trace else ())}:
        rules.add_rule(pyseccomp.ALLOW, name)
    for value in _PERSONALITIES:
        rules.add_rule(pyseccomp.ALLOW, "personality", pyseccomp.Arg(0, pyseccomp.EQ, value))
    for comparison, value in _SOCKETS:
        rules.add_rule(pyseccomp.ALLOW, "socket", pyseccomp.Arg(0, comparison, value))
    no_namespace = pyseccomp.Arg(0, pyseccomp.MASKED_EQ, _NEW_NAMESPACES, 0)
    rules.add_rule(pyseccomp.ALLOW, "clone", no_namespace)
    rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "clone3")
    with path.open("wb") as file:
        rules.export_bpf(file)
    path.chmod(0o644)
