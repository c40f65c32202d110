"""The items that `sigwrap doctor` checks, and what each shortfall means."""

from __future__ import annotations

from sigwrap.bare import Enum, NamedTuple
from sigwrap.machine import WITHOUT, Capability


class Level(Enum):
    OK = "ok"
    NOTE = "note"  # a run has its full protection; something else is missing
    LESS = "limited"  # a run works, with less protection
    NO = "fail"  # a run is refused
    UNKNOWN = "?"


class Shortfall(NamedTuple):
    level: Level
    lost: str
    todo: str


class Finding(NamedTuple):
    """`shortfall` is a key of SHORTFALLS, UNCHECKED, or empty if the item is as it should be."""

    item: str
    found: str
    shortfall: str = ""
    run_says: str = ""  # the line that a run prints for it


UNCHECKED = "untold"
_UNCHECKED = Shortfall(
    Level.UNKNOWN,
    "unknown",
    "fix the failed checks first, then run sigwrap doctor again",
)

MACHINE = "machine"
SESSION = "session"
KILL_SWITCH = "kill switch"
PROC = "/proc"
PROCESSES = "processes"
OPEN_FILES = "open files"
LIMITS = "other limits"
LISTENER = "listener"
KILLABLE_WAIT = "killable wait"
WAKE_UP = "fast wake-up"
TRACING = "tracing"
SIGNAL_SANDBOX = "signal sandbox"
FILE_SANDBOX = "file sandbox"
OTHER_CGROUPS = "other cgroups"
CGROUP = "session cgroup"
MEMORY_FILES = "memfd"
ACCELERATOR = "accelerator"
TERMINAL = "terminal"
TEMPORARY = "TMPDIR"
LIBC = "C library"
USER_NAMESPACES = "user namespaces"
STORE = "store"
RUN = "test run"

_NOT_SUCH_A_MACHINE = (
    "use an x86_64 machine, or run the command without interception (--best-effort)"
)

_NO_ROOM_TO_UNPACK = (
    "the one-file binary cannot unpack itself there, so it does not start; an installed sigwrap "
    "and the zipapp do"
)

SHORTFALLS = {
    (MACHINE, "unknown"): Shortfall(
        Level.NO,
        "sigwrap does not know the system calls of this machine",
        _NOT_SUCH_A_MACHINE,
    ),
    (MACHINE, "untried"): Shortfall(
        Level.NO,
        "aarch64 is tested only in an emulator; untested features may not work",
        f"{_NOT_SUCH_A_MACHINE}; SIGWRAP_UNTRIED=1 runs it anyway",
    ),
    (MACHINE, "being tried"): Shortfall(
        Level.LESS,
        "untested features may not work (sigwrap help platforms)",
        "do not rely on a protection that was not tested on aarch64",
    ),
    (SESSION, "inside"): Shortfall(
        Level.NO,
        "a run inside a session is refused, and some checks cannot run here",
        "run sigwrap doctor in a shell outside the session; to run a command under this session's "
        "rules: sigwrap --nested join -- COMMAND",
    ),
    (KILL_SWITCH, "on"): Shortfall(
        Level.NO,
        "no session starts",
        "turn it off when sessions may start again: sigwrap killswitch off",
    ),
    (KILL_SWITCH, "unseen"): Shortfall(
        Level.LESS,
        "a run starts without checking that kill switch, and its log says so",
        "check the permissions of that directory, or set HOME and XDG_STATE_HOME",
    ),
    (PROC, "absent"): Shortfall(
        Level.NO,
        "sigwrap cannot see processes, so it runs nothing",
        "mount it: mount -t proc proc /proc",
    ),
    (PROC, "coverable"): Shortfall(
        Level.LESS,
        "sigwrap would believe files that a process in the session mounts there",
        "run sigwrap without CAP_SYS_ADMIN, or permit fsopen(2) or open_tree(2)",
    ),
    (PROC, "hides"): Shortfall(
        Level.NOTE,
        "sigwrap killswitch on cannot check for sessions that it does not see",
        "nothing for a run; otherwise mount /proc without hidepid",
    ),
    (PROCESSES, "refused"): Shortfall(
        Level.NO,
        "a run needs two processes besides the command's own",
        "raise the process limit: ulimit -u, or the container's pids limit",
    ),
    (OPEN_FILES, "few"): Shortfall(
        Level.NO,
        "a run needs more open files",
        "raise the limit: ulimit -n 48, or more",
    ),
    (LIMITS, "tight"): Shortfall(
        Level.LESS,
        "these limits apply to sigwrap as well: if its log cannot grow, it denies every exec; "
        "without memory, the run ends",
        "set a soft limit (ulimit -S), which applies to the command only, or none",
    ),
    (LISTENER, "refused"): Shortfall(
        Level.NO,
        "sigwrap cannot intercept calls, so it runs nothing",
        "permit seccomp(2) and its listener (in a container: another seccomp profile), or run the "
        "command without interception (--best-effort)",
    ),
    (LISTENER, "taken"): Shortfall(
        Level.NO,
        "the kernel allows only one listener, so sigwrap runs nothing",
        "start sigwrap outside that supervisor, or run the command in its session: --nested join",
    ),
    (KILLABLE_WAIT, "absent"): Shortfall(
        Level.LESS,
        WITHOUT[Capability.WAITS_THROUGH_SIGNALS],
        "use Linux 5.19 or later",
    ),
    (WAKE_UP, "absent"): Shortfall(
        Level.NOTE,
        "each decision takes several times longer",
        "use Linux 6.6 or later",
    ),
    (TRACING, "refused"): Shortfall(
        Level.NO,
        "sigwrap cannot verify what an exec loads, so it denies every exec, the command's own "
        "included",
        "permit ptrace(2) (docker: --cap-add SYS_PTRACE, or another seccomp profile), and set "
        "kernel.yama.ptrace_scope to 0 or 1",
    ),
    (TRACING, "traced"): Shortfall(
        Level.LESS,
        "sigwrap verifies an exec only after the program has started (`verified: false` in its "
        "event)",
        "start sigwrap outside that program",
    ),
    (SIGNAL_SANDBOX, "absent"): Shortfall(
        Level.LESS,
        WITHOUT[Capability.SIGNAL_WALL],
        "use Linux 6.12 or later with Landlock (CONFIG_SECURITY_LANDLOCK, lsm=landlock,…)",
    ),
    (FILE_SANDBOX, "absent"): Shortfall(
        Level.LESS,
        "file_rules are not enforced: agent-default runs without them, agent-strict refuses to run",
        "use Linux 6.2 or later with Landlock (CONFIG_SECURITY_LANDLOCK, lsm=landlock,…)",
    ),
    (OTHER_CGROUPS, "open"): Shortfall(
        Level.LESS,
        WITHOUT[Capability.CGROUP_WALL],
        "use a kernel with Landlock, and no `session: {mounts: true}` in the policy",
    ),
    (CGROUP, "absent"): Shortfall(
        Level.NOTE,
        "sigwrap polls /proc for a policy's cpu_time and memory limits; it may notice a fast "
        "process late, and the kernel enforces no limit",
        "start sigwrap in a cgroup that this user may write to: systemd-run --user --scope -p "
        "Delegate=yes",
    ),
    (MEMORY_FILES, "refused"): Shortfall(
        Level.NOTE,
        "a run loads libraries from their files; the one-file binary runs no policy that has "
        "patterns",
        "sysctl vm.memfd_noexec=0, or permit memfd_create(2)",
    ),
    (ACCELERATOR, "absent"): Shortfall(
        Level.NOTE,
        "each exec takes several times longer to decide",
        "install sigwrap where a C compiler and Python's headers are, or use the binary",
    ),
    (ACCELERATOR, "off"): Shortfall(
        Level.NOTE,
        "each exec takes several times longer to decide",
        "unset SIGWRAP_PURE_PYTHON",
    ),
    (TERMINAL, "none"): Shortfall(
        Level.NOTE,
        "approval requests cannot be shown here",
        "answer from another shell (sigwrap approve ID), or deny them all: --approvals deny",
    ),
    (TERMINAL, "typed"): Shortfall(
        Level.NOTE,
        "approval requests are not shown on this terminal",
        "answer from another terminal (sigwrap approve ID), or start sigwrap on a plain terminal",
    ),
    (TERMINAL, "no pty"): Shortfall(
        Level.NOTE,
        "programs that create a pseudo-terminal (script, tmux, an agent's shell) fail, with or "
        "without sigwrap",
        "mount devpts: mount -t devpts devpts /dev/pts",
    ),
    (TEMPORARY, "noexec"): Shortfall(
        Level.NOTE,
        _NO_ROOM_TO_UNPACK,
        "set TMPDIR to a directory that allows executables, such as $XDG_RUNTIME_DIR",
    ),
    (TEMPORARY, "unusable"): Shortfall(
        Level.NOTE,
        _NO_ROOM_TO_UNPACK,
        "set TMPDIR to a directory of yours with 20 MB free",
    ),
    (LIBC, "other"): Shortfall(
        Level.NOTE,
        "the one-file binary does not start here; this sigwrap does",
        "on systems without glibc, install sigwrap or use the zipapp",
    ),
    (USER_NAMESPACES, "refused"): Shortfall(
        Level.NOTE,
        "sigwrap needs none; programs with their own sandbox (bubblewrap, Chromium) fail, with or "
        "without sigwrap",
        "set sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone or "
        "kernel.apparmor_restrict_unprivileged_userns, whichever this system has",
    ),
    (STORE, "refused"): Shortfall(
        Level.NO,
        "sigwrap runs nothing that it cannot record",
        "choose a writable directory with --store or $SIGWRAP_STORE",
    ),
    (STORE, "served"): Shortfall(
        Level.NOTE,
        "the file system may be remote; each event waits for its server",
        "choose a directory on a local disk, with --store or $SIGWRAP_STORE",
    ),
    (RUN, "refused"): Shortfall(
        Level.NO,
        "any other run would fail the same way",
        "fix the other failed checks; if there are none, please report this",
    ),
    (RUN, "less"): Shortfall(
        Level.LESS,
        "the features that the log lists under `missing`",
        "see the other items",
    ),
}

ITEMS = tuple(dict.fromkeys(item for item, _ in SHORTFALLS))


def shortfall_of(finding: Finding) -> Shortfall | None:
    if not finding.shortfall:
        return None
    if finding.shortfall == UNCHECKED:
        return _UNCHECKED
    return SHORTFALLS[finding.item, finding.shortfall]


def level_of(finding: Finding) -> Level:
    shortfall = shortfall_of(finding)
    return Level.OK if shortfall is None else shortfall.level


def unchecked(item: str, why: str) -> Finding:
    return Finding(item, why, UNCHECKED)
