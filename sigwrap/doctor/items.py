"""What is tried, and what each answer means: the one table behind the lines, the JSON and
docs/doctor.md."""

from __future__ import annotations

from sigwrap.bare.enum import Enum
from sigwrap.platform import WITHOUT, Capability
from sigwrap.tuples import NamedTuple


class Level(Enum):
    OK = "ok"
    NOTE = "note"  # a run is whole; something beside it isn't
    LESS = "less"  # a run works, and does not hold everything
    NO = "no"  # a run is refused
    UNKNOWN = "?"


class Shortfall(NamedTuple):
    level: Level
    when: str
    lost: str
    todo: str


class Item(NamedTuple):
    name: str
    tried: str
    shortfalls: dict[str, Shortfall]


class Finding(NamedTuple):
    """`shortfall`: a key of its item's, or UNTOLD; empty where nothing falls short."""

    item: str
    found: str
    shortfall: str = ""
    run_says: str = ""  # the line that a run has for it


UNTOLD = "untold"
_UNTOLD = Shortfall(
    Level.UNKNOWN,
    "it can't be told here",
    "it can't be told",
    "mend what stands under no first, and ask again",
)

MACHINE = "machine"
SESSION = "session"
KILL_SWITCH = "kill switch"
PROC = "/proc"
PROCESSES = "processes"
OPEN_FILES = "open files"
LIMITS = "other limits"
LISTENER = "listener"
PATIENCE = "patient calls"
WAKE_UP = "quick answers"
TRACING = "tracing"
SIGNAL_WALL = "signal wall"
FILE_WALL = "file wall"
CGROUPS_OF_OTHERS = "foreign cgroups"
CGROUP = "own cgroup"
MEMORY_FILES = "memory files"
ACCELERATOR = "accelerator"
TERMINAL = "terminal"
TEMPORARY = "TMPDIR"
LIBC = "C library"
USER_NAMESPACES = "user namespaces"
STORE = "store"
RUN = "a run"

_NOT_SUCH_A_MACHINE = "run it on x86_64; --best-effort runs a command without interception"

ITEMS = (
    Item(
        MACHINE,
        "as a run does: asks for which one Python was built",
        {
            "unknown": Shortfall(
                Level.NO,
                "it is neither x86_64 nor aarch64",
                "its calls aren't known",
                _NOT_SUCH_A_MACHINE,
            ),
            "untried": Shortfall(
                Level.NO,
                "it is aarch64, where runs were tried in an emulator alone",
                "what no test has shown there may be wrong",
                f"{_NOT_SUCH_A_MACHINE}; SIGWRAP_UNTRIED=1 tries it",
            ),
            "being tried": Shortfall(
                Level.LESS,
                "it is aarch64, and SIGWRAP_UNTRIED is set",
                "docs/portability.md says what was tried there, and what is missing",
                "trust no wall that was not tried there",
            ),
        },
    ),
    Item(
        SESSION,
        "looks for a supervisor among the processes above",
        {
            "inside": Shortfall(
                Level.NO,
                "it is itself supervised",
                "a run inside a session is refused, and what only a run's start shows can't be "
                "told from in here",
                "ask in a shell that isn't under sigwrap; to run something under this session's "
                "rules: sigwrap --nested join -- COMMAND",
            )
        },
    ),
    Item(
        KILL_SWITCH,
        "as a run does: looks into the stores whose kill switch counts for it",
        {
            "on": Shortfall(
                Level.NO, "it is on", "no session starts", "sigwrap killswitch off, once it may be"
            ),
            "unseen": Shortfall(
                Level.LESS,
                "whether it is on can't be seen in one of them",
                "a run goes on, and its log says so",
                "see who may open that folder, or set HOME and XDG_STATE_HOME",
            ),
        },
    ),
    Item(
        PROC,
        "as a run does: holds it, and compares the number of its own process",
        {
            "absent": Shortfall(
                Level.NO,
                "it isn't there, or is another pid namespace's",
                "nothing is known of any process, so nothing is run",
                "mount it: mount -t proc proc /proc",
            ),
            "coverable": Shortfall(
                Level.LESS,
                "a process inside may mount over it",
                "what is mounted over it inside is believed",
                "run sigwrap without CAP_SYS_ADMIN, or permit it fsopen(2) or open_tree(2)",
            ),
            "hides": Shortfall(
                Level.NOTE,
                "it shows no processes of others (hidepid)",
                "sigwrap killswitch on can't be sure of sessions that it doesn't see",
                "nothing is needed for a run; else mount it without hidepid",
            ),
        },
    ),
    Item(
        PROCESSES,
        "makes one more, without the soft limit",
        {
            "refused": Shortfall(
                Level.NO,
                "no process can be made",
                "a run takes two beside the command's own",
                "raise the limit of processes: ulimit -u, or the container's pids limit",
            )
        },
    ),
    Item(
        OPEN_FILES,
        "as a run does: looks at the hard limit",
        {
            "few": Shortfall(
                Level.NO,
                "the hard limit is too low",
                "a run can't hold what it supervises",
                "raise it: ulimit -n 48, or more",
            )
        },
    ),
    Item(
        LIMITS,
        "as a run does: lifts the caller's limits, and looks which stay",
        {
            "tight": Shortfall(
                Level.LESS,
                "a hard limit holds for sigwrap as well",
                "sigwrap itself may reach it: a log that can't grow denies every exec, and without "
                "memory a run ends",
                "set a soft one (ulimit -S), which the command alone gets, or none",
            )
        },
    ),
    Item(
        LISTENER,
        "as a run does: puts a child under the filter, and answers a call of it",
        {
            "refused": Shortfall(
                Level.NO,
                "the kernel, or a container's filter, refuses it",
                "nothing can be decided, so nothing is run",
                "permit seccomp(2) and its listener (in a container: another seccomp profile); "
                "--best-effort runs the command without interception",
            ),
            "taken": Shortfall(
                Level.NO,
                "another supervisor listens to this process tree",
                "the kernel allows one listener, so nothing is run",
                "start sigwrap outside of that program; --nested join runs the command under the "
                "outer session",
            ),
        },
    ),
    Item(
        PATIENCE,
        "as a run does: sends that child a signal while its call waits",
        {
            "absent": Shortfall(
                Level.LESS,
                "the kernel has no killable wait",
                WITHOUT[Capability.WAITS_THROUGH_SIGNALS],
                "it needs Linux 5.19 or later",
            )
        },
    ),
    Item(
        WAKE_UP,
        "as a run does: asks the listener for it",
        {
            "absent": Shortfall(
                Level.NOTE,
                "the kernel has no synchronous wake-up",
                "each decision takes several times longer",
                "it needs Linux 6.6 or later",
            )
        },
    ),
    Item(
        TRACING,
        "seizes that child, reads its memory, and lets it go",
        {
            "refused": Shortfall(
                Level.NO,
                "ptrace(2) or reading the memory of a child is refused",
                "no exec can be compared with what was judged: each is denied, the command's own "
                "as well",
                "permit ptrace(2) (docker: --cap-add SYS_PTRACE, or another seccomp profile), and "
                "let kernel.yama.ptrace_scope be 0 or 1",
            ),
            "traced": Shortfall(
                Level.LESS,
                "somebody traces this process and its children (strace -f)",
                "what an exec loads is compared when it is seen, and not before it runs "
                "(`verified: false` in its event)",
                "start sigwrap outside of that program",
            ),
        },
    ),
    Item(
        SIGNAL_WALL,
        "as a run does: enters a Landlock domain with that child",
        {
            "absent": Shortfall(
                Level.LESS,
                "the kernel's Landlock keeps no signals, or there is none",
                WITHOUT[Capability.SIGNAL_WALL],
                "it needs Linux 6.12 with Landlock (CONFIG_SECURITY_LANDLOCK, lsm=landlock,…)",
            )
        },
    ),
    Item(
        FILE_WALL,
        "as a run does: asks for Landlock's version",
        {
            "absent": Shortfall(
                Level.LESS,
                "the kernel's Landlock keeps no files, or there is none",
                "file_rules are not held: agent-default goes on without them, agent-strict "
                "refuses to run",
                "it needs Linux 6.2 with Landlock (CONFIG_SECURITY_LANDLOCK, lsm=landlock,…)",
            )
        },
    ),
    Item(
        CGROUPS_OF_OTHERS,
        "as a run does: looks which of them may be written, and whether a wall keeps them",
        {
            "open": Shortfall(
                Level.LESS,
                "a process inside may write to one that others are in",
                WITHOUT[Capability.CGROUP_WALL],
                "it needs Landlock, and no `session: {mounts: true}` in the policy",
            )
        },
    ),
    Item(
        CGROUP,
        "as a run does: makes one, moves a child into it, and removes it",
        {
            "absent": Shortfall(
                Level.NOTE,
                "none can be made",
                "a policy's cpu_time and memory are counted by looks at /proc: who is quicker "
                "than a look is seen late, and no limit of the kernel's own stands behind them",
                "start sigwrap in a cgroup that this user may write to: systemd-run --user --scope "
                "-p Delegate=yes",
            )
        },
    ),
    Item(
        MEMORY_FILES,
        "as a run does: keeps a library in memory, and loads it from there",
        {
            "refused": Shortfall(
                Level.NOTE,
                "memfd_create(2) is refused, or code from there (vm.memfd_noexec)",
                "what a run would load later is loaded at its start, from its file; the binary, "
                "which carries such libraries packed, runs no policy that has patterns",
                "sysctl vm.memfd_noexec=0, or permit memfd_create(2) and unshare(CLONE_FS)",
            )
        },
    ),
    Item(
        ACCELERATOR,
        "as a run does: imports it",
        {
            "absent": Shortfall(
                Level.NOTE,
                "the extension was not compiled",
                "every exec is judged anew, which takes several times longer",
                "install sigwrap where a C compiler and Python's headers are, or use the binary",
            ),
            "off": Shortfall(
                Level.NOTE,
                "SIGWRAP_PURE_PYTHON is set",
                "every exec is judged anew, which takes several times longer",
                "unset SIGWRAP_PURE_PYTHON",
            ),
        },
    ),
    Item(
        TERMINAL,
        "opens the one that controls this process, and a new pseudo-terminal",
        {
            "none": Shortfall(
                Level.NOTE,
                "there is none",
                "nobody is asked at once: what a rule asks about waits for somebody elsewhere",
                "answer from another shell, sigwrap approve ID, or have --approvals deny",
            ),
            "typed": Shortfall(
                Level.NOTE,
                "the session could type on it",
                "nobody is asked on it: what a rule asks about waits for somebody elsewhere",
                "answer from another terminal, sigwrap approve ID, or start it on a plain one",
            ),
            "no pty": Shortfall(
                Level.NOTE,
                "no pseudo-terminal can be made",
                "programs that make one (script, tmux, an agent's shell) fail, with or without "
                "sigwrap",
                "mount devpts: mount -t devpts devpts /dev/pts",
            ),
        },
    ),
    Item(
        TEMPORARY,
        "maps a file there as code, as the binary's start does",
        {
            "noexec": Shortfall(
                Level.NOTE,
                "it is mounted noexec",
                "the one-file binary can't start: it unpacks itself there. An installed sigwrap "
                "and the zipapp don't need it",
                "set TMPDIR to a folder that programs may be executed from, such as "
                "$XDG_RUNTIME_DIR",
            ),
            "unusable": Shortfall(
                Level.NOTE,
                "nothing can be written there",
                "the one-file binary can't start: it unpacks itself there. An installed sigwrap "
                "and the zipapp don't need it",
                "set TMPDIR to a folder of yours with 20 MB of room",
            ),
        },
    ),
    Item(
        LIBC,
        "asks it which one it is, and reads which one the binary's files ask for",
        {
            "other": Shortfall(
                Level.NOTE,
                "it isn't glibc",
                "the one-file binary does not start here; this sigwrap does",
                "install sigwrap, or use the zipapp, where no glibc is",
            )
        },
    ),
    Item(
        USER_NAMESPACES,
        "makes one, in a child",
        {
            "refused": Shortfall(
                Level.NOTE,
                "none can be made",
                "sigwrap needs none; programs with a sandbox of their own (bubblewrap, Chromium) "
                "fail, with or without it",
                "sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone or "
                "kernel.apparmor_restrict_unprivileged_userns, as the system has it",
            )
        },
    ),
    Item(
        STORE,
        "as a run does: makes a log there; then removes it",
        {
            "refused": Shortfall(
                Level.NO,
                "no log can be made there",
                "what isn't recorded doesn't happen, so nothing is run",
                "choose a folder that can be written, with --store or $SIGWRAP_STORE",
            ),
            "served": Shortfall(
                Level.NOTE,
                "its file system isn't known to be local",
                "each event waits for whoever serves it",
                "choose a folder on a disk of this machine, with --store or $SIGWRAP_STORE",
            ),
        },
    ),
    Item(
        RUN,
        "runs `true` under agent-default, whole, with a store that is removed again",
        {
            "refused": Shortfall(
                Level.NO,
                "the command did not run, or its log has no end",
                "a run of anything else would end so too",
                "mend what else stands here under no; else please report it",
            ),
            "less": Shortfall(
                Level.LESS,
                "it ran, and its log names something that is missing",
                "what the log names under `missing`",
                "see the other items",
            ),
        },
    ),
)

BY_NAME = {item.name: item for item in ITEMS}


def shortfall_of(finding: Finding) -> Shortfall | None:
    if not finding.shortfall:
        return None
    if finding.shortfall == UNTOLD:
        return _UNTOLD
    return BY_NAME[finding.item].shortfalls[finding.shortfall]


def level_of(finding: Finding) -> Level:
    shortfall = shortfall_of(finding)
    return Level.OK if shortfall is None else shortfall.level


def untold(item: str, why: str) -> Finding:
    return Finding(item, why, UNTOLD)
