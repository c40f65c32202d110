"""Every key of a policy, once.

The parser's checks, docs/policy-reference.md and docs/policy.schema.json all come from POLICY
below, so they cannot contradict each other.

Named tuples, not dataclasses: sigwrap makes these at each start, and a named tuple takes an eighth
of the time.
"""

from __future__ import annotations

from sigwrap.bare.enum import Enum
from sigwrap.policy.judge.network import Direction, Protocol
from sigwrap.policy.judge.request import Operation, TargetType
from sigwrap.policy.judge.rules import LOG_REACTIONS
from sigwrap.tuples import NamedTuple

COMMAND_DECISIONS = ("allow", "deny", "audit", "approve", "redirect")
SIGNAL_DECISIONS = ("allow", "deny", "audit", "approve", "redirect", "absorb")
PLAIN_DECISIONS = ("allow", "deny", "audit", "approve")
FILE_DECISIONS = ("allow", "deny", "audit")
OPERATIONS = tuple(each.value for each in Operation)
REACTIONS = ("log", "stop", "kill")
TARGET_WORDS = tuple(each.value for each in TargetType)


class Form(Enum):
    """The form of a text, as the reference names it. `$` marks forms that take variables."""

    PLAIN = "text"
    TEMPLATE = "text `$`"
    HOST_TEMPLATE = "text `$`, or `${SIGWRAP_HOST:NAME}`"
    NAME = "name"
    VARIABLE = "variable name"
    NAME_GLOB = "glob for a variable name"
    GLOB = "glob `$`"
    PROGRAM = "name or path glob `$`"
    PATH = "path glob `$`"
    FILE = "path `$`"
    DESTINATION = "destination"
    PLACE = "file or directory, glob `$`"
    FLAG = "flag, `f` or `force`"
    SUBCOMMAND = "one to three words, no options"
    REGEX = "RE2 pattern `$`"
    DIGEST = "SHA-256 in hexadecimal"
    SIGNAL = "signal name or number"
    SIGNALS = "signal name, number or group"
    BASE = "shipped policy, or a file next to this one"


# The whole text must match; JSON Schema and Python's `re` read these patterns alike.
PATTERNS: dict[Form, str] = {
    Form.NAME: "[A-Za-z0-9][A-Za-z0-9._-]*",
    Form.VARIABLE: "[A-Za-z_][A-Za-z0-9_]*",
    Form.NAME_GLOB: "[^=$\\x00]+",
    Form.DIGEST: "[0-9a-fA-F]{64}",
    Form.FLAG: "-{0,2}[A-Za-z0-9][A-Za-z0-9_-]*",
    Form.SUBCOMMAND: "(?:-|(?!-)[\\s\\S]*)",
}


class Text(NamedTuple):
    form: Form = Form.PLAIN


class Word(NamedTuple):
    words: tuple[str, ...]
    kind: str = ""  # what the reference says instead of the words


class Number(NamedTuple):
    minimum: int = 0
    maximum: int = 2**31 - 1


class Flag(NamedTuple):
    pass


class Duration(NamedTuple):
    """A number of seconds, or a number with a unit: 45s, 10m, 1h30m, 2d."""


class Size(NamedTuple):
    """A number of bytes, or a number with a unit: K, M or G."""


class ListOf(NamedTuple):
    item: Shape
    minimum: int = 0


class MapOf(NamedTuple):
    key: Text
    value: Shape


class Group(NamedTuple):
    title: str
    keys: tuple[Key, ...]
    notes: str = ""  # Markdown, below the keys' table in the reference


class OneOf(NamedTuple):
    """At most one option for each YAML kind (scalar, list, mapping): the kind picks the option."""

    options: tuple[Shape, ...]


Shape = Text | Word | Number | Flag | Duration | Size | ListOf | MapOf | Group | OneOf


class Key(NamedTuple):
    name: str
    shape: Shape
    meaning: str
    required: bool = False
    old: bool = False  # read as ever, and left out of the reference


def _key(
    name: str, shape: Shape, meaning: str, *, required: bool = False, old: bool = False
) -> Key:
    return Key(name=name, shape=shape, meaning=meaning, required=required, old=old)


_NAME = _key("name", Text(form=Form.NAME), "Shown in events and messages", required=True)
_DESCRIPTION = _key("description", Text(), "A comment for readers")
_MESSAGE = _key(
    "message",
    Text(form=Form.TEMPLATE),
    "The reason that users read",
)
_ESCALATE = _key(
    "escalate",
    Word(words=("SIGPOLICY",)),
    "Kill the process tree once the decision is logged",
)
_OVERRIDES = _key(
    "overrides",
    ListOf(item=Text(form=Form.NAME)),
    "Rules of a base that this rule may weaken; `[]` is none",
)
_LAYER = _key("layer", Number(), "Written by `policy show`: how many bases lie below [default: 0]")
RULE_KEYS = (_NAME, _DESCRIPTION, _OVERRIDES, _LAYER)  # of every rule
_TARGET_WORD = Word(words=TARGET_WORDS, kind="target word")

_REDIRECT = Group(
    title="redirect_to",
    keys=(
        _key(
            "command",
            Text(form=Form.TEMPLATE),
            "The program that runs instead; also its `argv[0]`",
            required=True,
        ),
        _key("args", ListOf(item=Text(form=Form.TEMPLATE)), "Its arguments"),
        _key("append_args", Flag(), "Add the original arguments after `args` [default: false]"),
        _key(
            "env",
            MapOf(key=Text(form=Form.VARIABLE), value=Text(form=Form.HOST_TEMPLATE)),
            "Variables to add. `${SIGWRAP_HOST:NAME}` is the value in sigwrap's own environment",
        ),
        _key(
            "via",
            Word(words=("exec", "stub")),
            "`exec`: the caller's environment; `stub`: the one that the command started with "
            "[default: exec]",
        ),
        _key(
            "record",
            Flag(),
            "With `via: stub`: log the replacement's standard streams [default: false]",
        ),
    ),
)

_DEPTH = Group(
    title="depth",
    keys=(
        _key("min", Number(), "Lowest depth; the command has 0, its children 1"),
        _key("max", Number(), "Highest depth"),
    ),
)

_COMMAND_RULE = Group(
    title="command_rules",
    keys=(
        _NAME,
        _DESCRIPTION,
        _key(
            "commands",
            ListOf(item=Text(form=Form.PROGRAM), minimum=1),
            "Programs by name, or by full path with links resolved; `./x` and `bin/x` start at "
            '`${PROJECT_ROOT}`. `"*"` is every program',
            required=True,
        ),
        _key(
            "args",
            ListOf(item=Text(form=Form.TEMPLATE)),
            "All arguments, in order; `[]` is none",
        ),
        _key(
            "flags",
            ListOf(item=Text(form=Form.FLAG), minimum=1),
            "All of these flags, in any spelling: `[r, f]` is `-rf`, `--force -R`",
        ),
        _key(
            "args_patterns",
            ListOf(item=Text(form=Form.REGEX), minimum=1),
            "Found in one argument, or in all joined by spaces; `^` and `$` are the text's ends",
        ),
        _key(
            "subcommands",
            ListOf(item=Text(form=Form.SUBCOMMAND), minimum=1),
            'The first arguments that are no options, as in `pr merge`; `""` is none',
        ),
        _key(
            "paths",
            ListOf(item=Text(form=Form.PATH), minimum=1),
            "An argument, or what follows its `=`, names one of these files",
        ),
        _key(
            "sources",
            ListOf(item=Text(form=Form.PATH), minimum=1),
            "Like `paths`, without the last argument: what `mv` and `cp` read",
            old=True,
        ),
        _key("depth", _DEPTH, "Depth of the caller in the process tree", old=True),
        _key(
            "sha256",
            ListOf(item=Text(form=Form.DIGEST), minimum=1),
            "The file has one of these digests",
        ),
        _key(
            "not_sha256",
            ListOf(item=Text(form=Form.DIGEST), minimum=1),
            "The file has none of these digests",
        ),
        _key(
            "truncated",
            Flag(),
            "The arguments were (not) too long to judge completely",
            old=True,
        ),
        _key(
            "traced",
            Flag(),
            "The caller is traced, or the program file is unreadable (or neither)",
            old=True,
        ),
        _key(
            "system_file",
            Flag(),
            "Only root can change the file, its directory and the link that names it",
        ),
        _key(
            "loads_code",
            Flag(),
            "A variable such as `LD_PRELOAD` or `NODE_OPTIONS` makes this program load other code",
        ),
        _key("decision", Word(words=COMMAND_DECISIONS), "The decision", required=True),
        _MESSAGE,
        _key("redirect_to", _REDIRECT, "The replacement, with `decision: redirect`"),
        _ESCALATE,
        _OVERRIDES,
        _LAYER,
    ),
)

_TARGET_MAPPING = Group(
    title="target",
    keys=(
        _key(
            "type",
            Word(
                words=(*TARGET_WORDS, "process", "pid_range"),
                kind="target word, `process`, `pid_range`",
            ),
            "Which processes; `process` is any",
            required=True,
        ),
        _key("pattern", Text(form=Form.GLOB), "The target's command name must match too"),
        _key("min", Number(minimum=1), "With `pid_range`: the first pid"),
        _key("max", Number(minimum=1), "With `pid_range`: the last pid"),
    ),
)
_TARGET_ITEM = OneOf(options=(_TARGET_WORD, _TARGET_MAPPING))

_SIGNAL_RULE = Group(
    title="signal_rules",
    keys=(
        _NAME,
        _DESCRIPTION,
        _key(
            "signals",
            ListOf(item=Text(form=Form.SIGNALS), minimum=1),
            "`SIGTERM`, `15`, `SIGRTMIN+1`, `@halt`",
            required=True,
        ),
        _key(
            "target",
            OneOf(
                options=(
                    _TARGET_WORD,
                    _TARGET_MAPPING,
                    ListOf(item=_TARGET_ITEM, minimum=1),
                )
            ),
            "The receiver [default: every process]",
        ),
        _key(
            "handled",
            Flag(),
            "The target catches or ignores the signal (or does not)",
        ),
        _key("decision", Word(words=SIGNAL_DECISIONS), "The decision", required=True),
        _MESSAGE,
        _key(
            "redirect_to",
            Text(form=Form.SIGNAL),
            "The signal to send instead, with `decision: redirect`",
        ),
        _key(
            "fallback",
            Word(words=("allow", "audit")),
            "The decision where sigwrap cannot enforce the rule",
        ),
        _key("log", Flag(), "With `decision: allow`: write an event [default: true]"),
        _ESCALATE,
        _OVERRIDES,
        _LAYER,
    ),
)

_FILE_RULE = Group(
    title="file_rules",
    keys=(
        _NAME,
        _DESCRIPTION,
        _key(
            "paths",
            ListOf(item=Text(form=Form.PLACE), minimum=1),
            "A directory stands for everything below; `*`, `?`, `[a-z]` match in one name",
            required=True,
        ),
        _key(
            "operations",
            ListOf(item=Word(words=OPERATIONS), minimum=1),
            "The operations that the rule covers",
            required=True,
        ),
        _key("decision", Word(words=FILE_DECISIONS), "The decision", required=True),
        _key(
            "make_missing",
            Flag(),
            "With `decision: allow`: create missing directories, remove empty ones at the end "
            "[default: false]",
        ),
        _OVERRIDES,
        _LAYER,
    ),
)

_NETWORK_RULE = Group(
    title="network_rules",
    keys=(
        _NAME,
        _DESCRIPTION,
        _key(
            "destinations",
            ListOf(item=Text(form=Form.DESTINATION), minimum=1),
            "Hosts, addresses, networks, sockets",
            required=True,
        ),
        _key(
            "ports",
            ListOf(item=Number(minimum=1, maximum=65535), minimum=1),
            "Ports [default: every port]",
        ),
        _key(
            "protocol",
            Word(words=tuple(each.value for each in Protocol)),
            "[default: every protocol]",
        ),
        _key(
            "direction",
            Word(words=tuple(each.value for each in Direction)),
            "Connect and send, or listen [default: connect]",
        ),
        _key("decision", Word(words=PLAIN_DECISIONS), "The decision", required=True),
        _MESSAGE,
        _OVERRIDES,
        _LAYER,
    ),
)

_TEST_CASE = Group(
    title="tests",
    keys=(
        _key(
            "command",
            OneOf(options=(Text(), ListOf(item=Text(), minimum=1))),
            "A command line, split as a shell splits it, or a list of words",
        ),
        _key("depth", Number(), "The caller's depth [default: 1]", old=True),
        _key("truncated", Flag(), "[default: false]", old=True),
        _key("traced", Flag(), "[default: false]", old=True),
        _key("system_file", Flag(), "[default: whether the path is in a system directory]"),
        _key("loads_code", Flag(), "[default: whether `env` sets such a variable]"),
        _key("cwd", Text(form=Form.TEMPLATE), "Working directory [default: `${PROJECT_ROOT}`]"),
        _key("signal", Text(form=Form.SIGNAL), "A signal"),
        _key(
            "target",
            OneOf(options=(_TARGET_WORD, ListOf(item=_TARGET_WORD))),
            "The signal's receiver",
        ),
        _key("target_command", Text(), "The receiver's command name"),
        _key("target_pid", Number(minimum=1), "The receiver's pid"),
        _key("handled", Flag(), "The receiver handles the signal [default: false]"),
        _key("file", Text(form=Form.FILE), "A file"),
        _key("operation", Word(words=OPERATIONS), "The operation on the file"),
        _key("connect", Text(), "A destination: `example.com:443`, `unix:/run/x.sock`"),
        _key("listen", Text(), "The address of a server: `127.0.0.1:80`"),
        _key("protocol", Word(words=("tcp", "udp")), "For `connect` [default: tcp]"),
        _key("decision", Word(words=SIGNAL_DECISIONS), "The expected decision", required=True),
        _key("rule", Text(), "The rule that must decide"),
    ),
)

_DEFAULTS = Group(
    title="defaults",
    keys=(
        _key("command", Word(words=PLAIN_DECISIONS), "For commands [default: deny]"),
        _key("signal", Word(words=(*PLAIN_DECISIONS, "absorb")), "For signals [default: deny]"),
        _key("file", Word(words=FILE_DECISIONS), "For files [default: allow]"),
        _key("network", Word(words=PLAIN_DECISIONS), "As `network: deny`"),
    ),
)

_NETWORK = Group(
    title="network",
    keys=(
        _key("default", Word(words=PLAIN_DECISIONS), "The decision", required=True),
        _key("strict", Flag(), "Deny DNS and loopback too [default: false]"),
    ),
)

_ENV_POLICY = Group(
    title="env_policy",
    keys=(
        _key("remove", ListOf(item=Text(form=Form.NAME_GLOB)), "Variables to remove"),
        _key(
            "keep",
            ListOf(item=Text(form=Form.NAME_GLOB)),
            "Variables to keep although `remove` names them",
        ),
    ),
)

_LIMITS = Group(
    title="limits",
    keys=(
        _key("max_depth", Number(), "Depth of the process tree; a deeper exec is denied"),
        _key("max_children", Number(), "Children of one process at a time; checked at its execs"),
        _key(
            "max_processes",
            Number(),
            "Processes at a time, with zombies, without threads; checked at execs",
        ),
        _key(
            "at_fork",
            Flag(),
            "Check these at forks too (60 µs each); a refused fork fails with EAGAIN "
            "[default: false]",
        ),
        _key("max_execs", Number(), "Execs in the whole run"),
        _key("wall_time", Duration(), "Time that the run may take"),
        _key("cpu_time", Duration(), "Processor time of all processes together"),
        _key("memory", Size(), "Memory of all processes together, resident and swapped"),
        _key("log_size", Size(), "Size of the event log; `--log-size` overrides it [default: 1G]"),
        _key(
            "at_log_size",
            Word(words=LOG_REACTIONS),
            "Then `end` the run, or `deny` every exec and signal that would be logged "
            "[default: end]",
        ),
    ),
)

_SESSION = Group(
    title="session",
    keys=(
        _key(
            "mounts",
            Flag(),
            "Whether processes may mount file systems (`bwrap`, `podman`, `unshare -m`) and write "
            "to cgroup files",
        ),
    ),
)

_LOOP = Group(
    title="watch.loop",
    keys=(
        _key(
            "same_exec",
            Number(minimum=2),
            "Number of execs with the same file, arguments and directory",
            required=True,
        ),
        _key("within", Duration(), "The time in which they happen", required=True),
        _key("action", Word(words=REACTIONS), "At SIGLOOP [default: log]"),
    ),
)

_WATCH = Group(
    title="watch",
    keys=(
        _key("loop", _LOOP, "SIGLOOP, when the same exec repeats"),
        _key(
            "drift",
            Word(words=REACTIONS),
            "At SIGDRIFT, an exec outside the profile of `--profile FILE` [default: log]",
        ),
    ),
)

_TRUST = Group(
    title="trust",
    keys=(
        _key(
            "path_shadow",
            Word(words=("audit", "deny")),
            "Mark or deny a program that `PATH` finds before a system command of its name "
            "[default: audit]",
        ),
        _key(
            "boundary",
            Word(words=REACTIONS),
            "At SIGTRUST, an attempt on sigwrap itself [default: log]",
        ),
    ),
)

POLICY = Group(
    title="policy",
    keys=(
        _key("version", Number(minimum=1, maximum=1), "Version of the language", required=True),
        _NAME,
        _DESCRIPTION,
        _key(
            "extends",
            Text(form=Form.BASE),
            "The base; this file's rules come first, and only make it stricter",
        ),
        _key(
            "unenforced",
            Word(words=("warn", "error")),
            "Where file or network rules cannot be enforced: run without them and warn, or do not "
            "start [default: error]",
        ),
        _key(
            "approvals",
            Word(words=("ask", "deny")),
            "`deny` denies what a rule would `approve` [default: ask]",
        ),
        _key("defaults", _DEFAULTS, "Decisions where no rule matches"),
        _key(
            "network",
            OneOf(options=(Word(words=PLAIN_DECISIONS), _NETWORK)),
            "Connections that no rule matches; `{default: deny}` still allows DNS and loopback "
            "[default: allow]",
        ),
        _key(
            "vars",
            MapOf(key=Text(form=Form.VARIABLE), value=Text(form=Form.PLAIN)),
            "Variables of this policy; a value may use those above it",
        ),
        _key("command_rules", ListOf(item=_COMMAND_RULE), "Which programs may run"),
        _key("signal_rules", ListOf(item=_SIGNAL_RULE), "Which processes may be signalled"),
        _key("file_rules", ListOf(item=_FILE_RULE), "Which files may be read and changed"),
        _key("network_rules", ListOf(item=_NETWORK_RULE), "Which hosts and sockets may be reached"),
        _key("env_policy", _ENV_POLICY, "Environment variables to remove from the command"),
        _key("limits", _LIMITS, "Limits of a run; 0 is no limit"),
        _key("session", _SESSION, "Settings of the whole session"),
        _key("watch", _WATCH, "Patterns over time that raise an agent signal"),
        _key("trust", _TRUST, "Reactions to attempts to deceive sigwrap"),
        _key("tests", ListOf(item=_TEST_CASE), "Cases for `sigwrap policy check FILE`"),
    ),
)
