"""Every key of a policy, once.

The checks, the rules, `policy show`, docs/policy-reference.md and docs/policy.schema.json all come
from POLICY below, so they cannot contradict each other.
"""

from __future__ import annotations

from sigwrap.policy.judge import rules
from sigwrap.policy.judge.network import Direction, Protocol
from sigwrap.policy.judge.request import Action, CommandRedirect, Operation, TargetType, Via
from sigwrap.policy.judge.signals import signal_name
from sigwrap.policy.language.shapes import (
    Duration,
    Flag,
    Form,
    Group,
    Key,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Size,
    Text,
    Word,
    all_of,
    any_of,
    is_deeper,
    redirect_signal,
    same,
    shown_signals,
    shown_targets,
    signals,
    targets,
)

COMMAND_DECISIONS = ("allow", "deny", "audit", "approve", "redirect")
SIGNAL_DECISIONS = ("allow", "deny", "audit", "approve", "redirect", "absorb")
PLAIN_DECISIONS = ("allow", "deny", "audit", "approve")
FILE_DECISIONS = ("allow", "deny", "audit")
OPERATIONS = tuple(each.value for each in Operation)
REACTIONS = ("log", "stop", "kill")
TARGET_WORDS = tuple(each.value for each in TargetType)
TARGET_KINDS = (*TARGET_WORDS, "process", "pid_range")

_TEMPLATE = Text(Form.TEMPLATE)
_TEMPLATES = ListOf(_TEMPLATE)
_PATHS = ListOf(Text(Form.PATH), 1)
_DIGESTS = ListOf(Text(Form.DIGEST), 1)
_NAME_GLOBS = ListOf(Text(Form.NAME_GLOB))
_REACTION = Word(REACTIONS)
_TARGET_WORD = Word(TARGET_WORDS, "target word")
_PROTOCOLS = Word(tuple(each.value for each in Protocol))
_DIRECTIONS = Word(tuple(each.value for each in Direction))


def _decision(*words: str) -> Word:
    return Word(words, type=Action)


_NAME = Key("name", Text(Form.NAME), "Shown in events and messages", required=True)
_DESCRIPTION = Key("description", Text(), "A comment for readers")
_MESSAGE = Key("message", _TEMPLATE, "The reason that users read")
_ON = Key(
    "on",
    Word(("kill",)),
    "Kill the process tree once the decision is logged",
    to="escalate",
    make=lambda _: "SIGPOLICY",
    show=lambda _: "kill",
)
_ESCALATE = Key("escalate", Word(("SIGPOLICY",)), "As `on: kill`", old=True, new="on: kill")
_OVERRIDES = Key(
    "overrides", ListOf(Text(Form.NAME)), "Rules of a base that it may weaken; `[]` is none"
)
_LAYER = Key("layer", Number(), "Written by `policy show`: the number of bases below [default: 0]")
RULE_KEYS = (_NAME, _DESCRIPTION, _OVERRIDES, _LAYER)


def _rule(title: str, kind: type, *keys: Key) -> Group:
    return Group(title, (_NAME, _DESCRIPTION, *keys, _OVERRIDES, _LAYER), kind)


_REDIRECT = Group(
    "redirect_to",
    (
        Key(
            "command",
            _TEMPLATE,
            "An absolute path, or a name on sigwrap's `PATH`; also the replacement's `argv[0]`",
            required=True,
        ),
        Key("args", _TEMPLATES, "Its arguments"),
        Key("append_args", Flag(), "Add the original arguments after `args` [default: false]"),
        Key(
            "env",
            MapOf(Text(Form.VARIABLE), Text(Form.HOST_TEMPLATE)),
            "Variables to add; `${SIGWRAP_HOST:NAME}` is from sigwrap's own (`via: stub`)",
            make=lambda env: tuple(env.items()),
            show=dict,
        ),
        Key(
            "via",
            Word(("exec", "stub"), type=Via),
            "`exec`: the caller's environment; `stub`: the session's own [default: exec]",
        ),
        Key("record", Flag(), "With `via: stub`: log the replacement's standard streams"),
    ),
    CommandRedirect,
)

_DEPTH = Group(
    "depth", (Key("min", Number(), "Lowest"), Key("max", Number(), "Highest")), rules.Depth
)

_CONDITIONS = (
    Key(
        "commands",
        ListOf(Text(Form.PROGRAM), 1),
        'Names, or paths with links resolved; `bin/x` is below the project. `"*"` is all',
        required=True,
        unless="any",
    ),
    Key("args", _TEMPLATES, "All arguments, in order; `[]` is none", covers=same),
    Key(
        "flags",
        ListOf(Text(Form.FLAG), 1),
        "All of these, in any spelling: `[r, f]` is `-rf`, `--force -R`",
        covers=all_of,
    ),
    Key(
        "args_patterns",
        ListOf(Text(Form.REGEX), 1),
        "Found in one argument, or in all joined by spaces; `^` and `$` are the text's ends",
        covers=any_of,
    ),
    Key(
        "subcommands",
        ListOf(Text(Form.SUBCOMMAND), 1),
        'The first arguments that are no options, as in `pr merge`; `""` is none',
        covers=any_of,
    ),
    Key(
        "paths",
        _PATHS,
        "An argument, or what follows its `=`, names one of these files",
        covers=any_of,
    ),
    Key("sources", _PATHS, "As `paths`, without the last argument", covers=any_of),
    Key(
        "outside",
        _PATHS,
        "An argument that can be a path is none of these, nor below them; not for `allow`",
        covers=all_of,
    ),
    Key("depth", _DEPTH, "Depth of the caller", old=True, covers=is_deeper),
    Key("sha256", _DIGESTS, "The file has one of these digests", make=frozenset, covers=any_of),
    Key(
        "not_sha256",
        _DIGESTS,
        "The file has none of these digests",
        make=frozenset,
        covers=all_of,
    ),
    Key("truncated", Flag(), "The arguments are too long to judge completely", covers=same),
    Key("traced", Flag(), "The caller is traced, or the file unreadable", covers=same),
    Key(
        "system_file",
        Flag(),
        "Only root can change the file, its directory and the link that names it",
        covers=same,
    ),
    Key(
        "loads_code",
        Flag(),
        "A variable such as `LD_PRELOAD` makes the program load other code",
        covers=same,
    ),
)
ANY = Group("any", tuple(each._replace(required=False) for each in _CONDITIONS))

COMMAND_RULE = _rule(
    "command_rules",
    rules.CommandRule,
    *_CONDITIONS,
    Key(
        ANY.title,
        ListOf(ANY, 1),
        "Alternatives: one of them must match, and the keys beside it",
    ),
    Key("decision", _decision(*COMMAND_DECISIONS), "The decision", required=True),
    _MESSAGE,
    Key("redirect_to", _REDIRECT, "The replacement, with `decision: redirect`"),
    _ON,
    _ESCALATE,
)

_TARGET_MAPPING = Group(
    "target",
    (
        Key(
            "type",
            Word(TARGET_KINDS, "target word, `process`, `pid_range`"),
            "Which processes; `process` is any",
            required=True,
        ),
        Key("pattern", Text(Form.GLOB), "The target's command name must match too"),
        Key("min", Number(1), "With `pid_range`: the first pid"),
        Key("max", Number(1), "With `pid_range`: the last pid"),
    ),
)
_ONE_TARGET = (_TARGET_WORD, _TARGET_MAPPING)

_SIGNAL_REDIRECT = Group(
    "signal_rules.redirect_to",
    (Key("signal", Text(Form.SIGNAL), "The signal to send instead", required=True),),
)

SIGNAL_RULE = _rule(
    "signal_rules",
    rules.SignalRule,
    Key(
        "signals",
        ListOf(Text(Form.SIGNALS), 1),
        "`SIGTERM`, `15`, `SIGRTMIN+1`, `@halt`",
        required=True,
        make=signals,
        show=shown_signals,
    ),
    Key(
        "target",
        OneOf((*_ONE_TARGET, ListOf(OneOf(_ONE_TARGET), 1))),
        "The receiver [default: every process]",
        to="targets",
        make=targets,
        show=shown_targets,
    ),
    Key("handled", Flag(), "The target catches or ignores the signal (or does not)"),
    Key("decision", _decision(*SIGNAL_DECISIONS), "The decision", required=True),
    _MESSAGE,
    Key(
        "redirect_to",
        OneOf((_SIGNAL_REDIRECT, Text(Form.SIGNAL)), old=Text(Form.SIGNAL)),
        "The replacement, with `decision: redirect`",
        new="redirect_to: {signal: …}",
        to="redirect_signal",
        make=redirect_signal,
        show=lambda number: {"signal": signal_name(number)},
    ),
    Key(
        "fallback",
        _decision("allow", "audit"),
        "The decision where sigwrap cannot enforce the rule",
    ),
    Key("log", Flag(), "With `decision: allow`: write an event [default: true]"),
    _ON,
    _ESCALATE,
)

FILE_RULE = _rule(
    "file_rules",
    rules.FileRule,
    Key(
        "paths",
        ListOf(Text(Form.PLACE), 1),
        "Files, and directories with all below; `*`, `?`, `[a-z]` match in one name",
        required=True,
    ),
    Key(
        "operations",
        ListOf(Word(OPERATIONS, type=Operation), 1),
        "The operations that the rule covers",
        required=True,
    ),
    Key("decision", _decision(*FILE_DECISIONS), "The decision", required=True),
    Key(
        "make_missing",
        Flag(),
        "With `decision: allow`: create missing directories, remove empty ones at the end",
    ),
)

NETWORK_RULE = _rule(
    "network_rules",
    rules.NetworkRule,
    Key(
        "destinations",
        ListOf(Text(Form.DESTINATION), 1),
        "Hosts, addresses, networks, sockets",
        required=True,
    ),
    Key("ports", ListOf(Number(1, 65535), 1), "Ports [default: every port]"),
    Key("protocol", _PROTOCOLS, "[default: every protocol]"),
    Key("direction", _DIRECTIONS, "Connect and send, or listen [default: connect]"),
    Key("decision", _decision(*PLAIN_DECISIONS), "The decision", required=True),
    _MESSAGE,
)
RULES = {each.title: each for each in (COMMAND_RULE, SIGNAL_RULE, FILE_RULE, NETWORK_RULE)}

TEST_CASE = Group(
    "tests",
    (
        Key(
            "command",
            OneOf((Text(), ListOf(Text(), 1))),
            "A command line as for a shell, or a list of words",
        ),
        Key("depth", Number(), "The caller's depth [default: 1]", old=True),
        Key("truncated", Flag(), "[default: false]"),
        Key("traced", Flag(), "[default: false]"),
        Key("system_file", Flag(), "[default: whether the path is in a system directory]"),
        Key("loads_code", Flag(), "[default: whether `env` sets such a variable]"),
        Key("cwd", _TEMPLATE, "Working directory [default: `${PROJECT_ROOT}`]"),
        Key("signal", Text(Form.SIGNAL), "A signal"),
        Key("target", OneOf((_TARGET_WORD, ListOf(_TARGET_WORD))), "The signal's receiver"),
        Key("target_command", Text(), "The receiver's command name"),
        Key("target_pid", Number(1), "The receiver's pid"),
        Key("handled", Flag(), "The receiver handles the signal [default: false]"),
        Key("file", Text(Form.FILE), "A file"),
        Key("operation", Word(OPERATIONS, type=Operation), "The operation on the file"),
        Key("connect", Text(), "A destination: `example.com:443`, `unix:/run/x.sock`"),
        Key("listen", Text(), "The address of a server: `127.0.0.1:80`"),
        Key("protocol", Word(("tcp", "udp")), "For `connect` [default: tcp]"),
        Key("decision", _decision(*SIGNAL_DECISIONS), "The expected decision", required=True),
        Key("rule", Text(), "The rule that must decide"),
    ),
)

DEFAULTS = Group(
    "defaults",
    (
        Key(
            "command",
            _decision(*PLAIN_DECISIONS),
            "For commands [default: deny]",
            to="default_command",
        ),
        Key(
            "signal",
            _decision(*PLAIN_DECISIONS, "absorb"),
            "For signals [default: deny]",
            to="default_signal",
        ),
        Key("file", _decision(*FILE_DECISIONS), "For files [default: allow]", to="default_file"),
        Key("network", _decision(*PLAIN_DECISIONS), "As `network: deny`", to="default_network"),
    ),
)

_NETWORK = Group(
    "network",
    (
        Key("default", _decision(*PLAIN_DECISIONS), "The decision", required=True),
        Key("strict", Flag(), "Deny DNS and loopback too [default: false]"),
    ),
)

_ENV_POLICY = Group(
    "env_policy",
    (
        Key("remove", _NAME_GLOBS, "Variables to remove"),
        Key("keep", _NAME_GLOBS, "Exceptions from `remove`"),
    ),
    rules.EnvPolicy,
)

_LIMITS = Group(
    "limits",
    (
        Key("max_depth", Number(), "Depth of the process tree; a deeper exec is denied"),
        Key("max_children", Number(), "Children of a process at a time; checked at its execs"),
        Key("max_processes", Number(), "Processes at a time, with zombies; checked at execs"),
        Key(
            "at_fork", Flag(), "Check these at forks too (60 µs each), which then fail with EAGAIN"
        ),
        Key("max_execs", Number(), "Execs in the whole run"),
        Key("wall_time", Duration(), "Time that the run may take", to="wall_time_s"),
        Key("cpu_time", Duration(), "Processor time of all processes", to="cpu_time_s"),
        Key("memory", Size(), "Resident and swapped memory of all processes", to="memory_bytes"),
        Key(
            "log_size",
            Size(),
            "Size of the event log; `--log-size` overrides it [default: 1G]",
            to="log_size_bytes",
        ),
        Key(
            "at_log_size",
            Word(rules.LOG_REACTIONS),
            "Then `end` the run, or `deny` all that would be logged [default: end]",
        ),
    ),
    rules.Limits,
)

_SESSION = Group(
    "session",
    (
        Key(
            "mounts",
            Flag(),
            "Processes may mount file systems (`bwrap`, `podman`) and write to cgroup files",
        ),
        Key(
            "tracing",
            Word(rules.TRACING),
            "For debuggers and `strace` [default: deny]",
        ),
    ),
    rules.Session,
)

_LOOP = Group(
    "on.loop",
    (
        Key(
            "same_exec",
            Number(2),
            "Number of execs with the same file, arguments and directory",
            required=True,
        ),
        Key("within", Duration(), "The time in which they happen", required=True, to="within_s"),
        Key("action", _REACTION, "At SIGLOOP [default: log]"),
    ),
    rules.LoopWatch,
)

WATCH = Group(
    "watch",
    (
        Key("loop", _LOOP, "SIGLOOP, when the same exec repeats"),
        Key(
            "drift",
            _REACTION,
            "At SIGDRIFT, an exec outside the profile of `--profile FILE` [default: log]",
        ),
    ),
    rules.Watch,
)
BOUNDARY = Group(
    "on", (Key("boundary", _REACTION, "At SIGTRUST, an attempt on sigwrap itself [default: log]"),)
)
ON = Group("on", (*WATCH.keys, *BOUNDARY.keys))

_TRUST = Group(
    "trust",
    (
        Key(
            "path_shadow",
            _decision("audit", "deny"),
            "Mark or deny a program that `PATH` finds before a system command, unless it is older "
            "than the session [default: audit]",
        ),
        Key("boundary", _REACTION, "As in `on`", old=True, new="on: {boundary: …}"),
    ),
    rules.Trust,
)
_FALLBACK = Key(
    "fallback",
    Word(("warn", "error")),
    "If the kernel cannot enforce file or network rules: run and warn, or refuse to start "
    "[default: error]",
    to="tolerates_old_kernels",
    make=lambda word: word == "warn",
)
_VALUES = ("name", "description", "sequence", "expires", "fallback", "unenforced", "approvals")
# Fields of Policy; a policy may change single fields of its base's.
SECTIONS = {each.title: each for each in (_ENV_POLICY, _LIMITS, _SESSION, WATCH, _TRUST)}

POLICY = Group(
    "policy",
    (
        Key("version", Number(1, 1), "Version of the language", required=True),
        _NAME,
        _DESCRIPTION,
        Key(
            "extends",
            Text(Form.BASE),
            "The base; this file's rules come first and make it stricter",
        ),
        Key("sequence", Number(1, 2**53 - 1), "With a URL: rises with each change"),
        Key("expires", Text(Form.DATE), "With a URL: its last day, in UTC"),
        _FALLBACK,
        _FALLBACK._replace(name="unenforced", old=True, new="fallback"),
        Key(
            "approvals",
            Word(("ask", "deny")),
            "`deny` denies what a rule would `approve` [default: ask]",
            to="asks",
            make=lambda word: word == "ask",
        ),
        Key("defaults", DEFAULTS, "Decisions where no rule matches"),
        Key(
            "network",
            OneOf((Word(PLAIN_DECISIONS), _NETWORK)),
            "Connections that no rule matches; `{default: deny}` still allows DNS and loopback "
            "[default: allow]",
        ),
        Key(
            "vars",
            MapOf(Text(Form.VARIABLE), Text()),
            "Variables of this policy; a value may use those above it",
        ),
        Key("command_rules", ListOf(COMMAND_RULE), "Which programs may run"),
        Key("signal_rules", ListOf(SIGNAL_RULE), "Which processes may be signalled"),
        Key("file_rules", ListOf(FILE_RULE), "Which files may be read and changed"),
        Key("network_rules", ListOf(NETWORK_RULE), "Which hosts and sockets may be reached"),
        Key("env_policy", _ENV_POLICY, "Variables to remove from the command's environment"),
        Key("limits", _LIMITS, "Limits of a run; 0 is no limit"),
        Key("session", _SESSION, "Settings of the whole session"),
        Key("on", ON, "What follows an agent signal"),
        Key("watch", WATCH, "As `on`", old=True, new="on"),
        Key("trust", _TRUST, "Programs that pass for system commands"),
        Key("tests", ListOf(TEST_CASE), "Cases for `sigwrap policy check FILE`"),
    ),
)
# What of these is a field of Policy by itself.
VALUES = Group("policy", tuple(each for each in POLICY.keys if each.name in _VALUES))
