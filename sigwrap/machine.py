"""Tell which machine this is, its system call numbers, and its capabilities."""

from __future__ import annotations

import os
import sys

from sigwrap.bare import Enum, Protocol

# The platform that Python was built for: setarch changes uname, but no call number.
PLATFORM: str = getattr(sys.implementation, "_multiarch", "") or os.uname().machine
_NAME = PLATFORM.partition("-")[0]
IS_X86_64 = _NAME == "x86_64"
IS_AARCH64 = _NAME == "aarch64"

_NO_CALL = -1  # no call has this number: ENOSYS

# The numbers of calls on x86_64, i386 and aarch64, which has the kernel's generic table. From 424
# on, they are the same on every machine.
_NUMBERS = """
    accept=43/-/202 accept4=288/364/242 bpf=321/357/280 capset=126/185/91 clone=56/120/220
    clone3=435 close=3/6/57 close_range=436 connect=42/362/203 creat=85/8/-
    epoll_pwait=281/319/22 epoll_pwait2=441 epoll_wait=232/256/- execve=59/11/221
    execveat=322/358/281 exit=60/1/93 exit_group=231/252/94 faccessat2=439
    fanotify_init=300/338/262 fcntl=72/55/25 fcntl64=-/221/- fork=57/2/- fsconfig=431
    fsmount=432 fsopen=430 io_getevents=208/247/4 io_pgetevents=333/385/292 io_uring_enter=426
    io_uring_setup=425 ioctl=16/54/29 ioprio_set=251/289/30 kcmp=312/349/272
    kexec_file_load=320/-/294 kexec_load=246/283/104 keyctl=250/288/219 kill=62/37/129
    landlock_add_rule=445 landlock_create_ruleset=444 landlock_restrict_self=446 link=86/9/-
    linkat=265/303/37 listen=50/363/201 listmount=458 migrate_pages=256/294/238 mkdir=83/39/-
    mkdirat=258/296/34 mknod=133/14/- mknodat=259/297/33 mmap=9/90/222 mount=165/21/40
    mount_setattr=442 move_pages=279/317/239 mprotect=10/125/226 munmap=11/91/215 open=2/5/-
    open_by_handle_at=304/342/265 open_tree=428 openat=257/295/56 openat2=437
    perf_event_open=298/336/241 pidfd_getfd=438 pidfd_send_signal=424 poll=7/168/-
    ppoll=271/309/73 prctl=157/172/167 prlimit64=302/340/261 process_madvise=440
    process_vm_readv=310/347/270 process_vm_writev=311/348/271 pselect6=270/308/72
    ptrace=101/26/117 read=0/3/63 readv=19/145/65 reboot=169/88/142 recvfrom=45/371/207
    recvmmsg=299/337/243 recvmsg=47/372/212 rename=82/38/- renameat=264/302/38
    renameat2=316/353/276 rmdir=84/40/- rt_sigaction=13/174/134 rt_sigprocmask=14/175/135
    rt_sigqueueinfo=129/178/138 rt_sigtimedwait=128/177/137 rt_tgsigqueueinfo=297/335/240
    sched_setaffinity=203/241/122 sched_setattr=314/351/274 sched_setparam=142/154/118
    sched_setscheduler=144/156/119 seccomp=317/354/277 select=23/82/- semop=65/-/193
    semtimedop=220/-/192 sendmmsg=307/345/269 sendmsg=46/370/211 sendto=44/369/206
    setgroups=116/81/159 setns=308/346/268 setpgid=109/57/154 setpriority=141/97/140
    setresgid=119/170/149 setresuid=117/164/147 setsockopt=54/366/208 socket=41/359/198
    socketcall=-/102/- statmount=457 statx=332/383/291 symlink=88/83/- symlinkat=266/304/36
    tgkill=234/270/131 timer_create=222/259/107 timer_delete=226/263/111
    timer_settime=223/260/110 tkill=200/238/130 truncate=76/92/45 truncate64=-/193/-
    unlink=87/10/- unlinkat=263/301/35 userfaultfd=323/374/282 vfork=58/190/- vhangup=153/111/58
    write=1/4/64
"""


def _each_number(numbers: str) -> tuple[int | None, ...]:
    found = tuple(None if each == "-" else int(each) for each in numbers.split("/"))
    return found if len(found) > 1 else 3 * found


NUMBERS_BY_ARCH: dict[str, tuple[int | None, ...]] = {
    name: _each_number(numbers)
    for name, _, numbers in (each.partition("=") for each in _NUMBERS.split())
}


def numbers_on(*, aarch64: bool) -> dict[str, int]:
    column = 2 if aarch64 else 0
    found = ((name, numbers[column]) for name, numbers in NUMBERS_BY_ARCH.items())
    return {name: _NO_CALL if number is None else number for name, number in found}


NUMBERS = numbers_on(aarch64=not IS_X86_64)
if _NAME not in ("x86_64", "aarch64", "riscv64", "loongarch64"):
    # A call with another number here fails with ENOSYS, instead of being another call.
    NUMBERS.update((name, _NO_CALL) for name, number in NUMBERS.items() if number < 424)


def numbers_of(*names: str) -> frozenset[int]:
    """Return the numbers of those calls that this machine has."""
    return frozenset(NUMBERS[name] for name in names) - {_NO_CALL}


# Capabilities that a platform offers to the mediators.


class Capability(Enum):
    """Capabilities. The log has the values: session_started, `capabilities`."""

    INTERCEPTION = "interception"
    WAITS_THROUGH_SIGNALS = "waits_through_signals"
    VERIFICATION = "verification"
    REPLACEMENT = "replacement"
    RECORDING = "recording"
    DELIVERY = "delivery"
    FORKS = "forks"
    NETWORK = "network"
    SIGNAL_WALL = "signal_wall"
    CGROUP_WALL = "cgroup_wall"
    FILE_WALL = "file_wall"


WITHOUT: dict[Capability, str] = {
    Capability.INTERCEPTION: "no rule is enforced; a run needs --best-effort",
    Capability.WAITS_THROUGH_SIGNALS: (
        "a signal can interrupt a call that sigwrap is deciding; the caller repeats the call"
    ),
    Capability.VERIFICATION: "the loaded program is not compared with the judged one",
    Capability.REPLACEMENT: "rules with `redirect` deny",
    Capability.RECORDING: "rules with `record` deny",
    Capability.DELIVERY: "a signal that sigwrap has to send itself is denied",
    Capability.FORKS: "process limits are checked at execs only",
    Capability.NETWORK: "`network_rules` are not enforced",
    Capability.SIGNAL_WALL: (
        "a signal by a call that is not mediated can leave this session, and processes in the "
        "session can take the memory and descriptors of the user's other processes"
    ),
    Capability.CGROUP_WALL: (
        "a process that may write to a cgroup can stop or kill all processes in it"
    ),
    Capability.FILE_WALL: "`file_rules` are not enforced",
}


class Interception(Protocol):
    """Answers waiting calls by their notification id."""

    def is_waiting(self, notification_id: int) -> bool:
        """Return False if the caller has exited."""

    def resume(self, notification_id: int) -> bool:
        """Let the kernel carry out the call."""

    def fail(self, notification_id: int, error: int) -> bool: ...

    def succeed(self, notification_id: int, value: int) -> bool: ...
