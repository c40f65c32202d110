"""Every key of a policy, once.

The parser's checks, the reference in docs/policy.md and docs/policy.schema.json all come from
POLICY below, so none of them can say something the others don't.

Named tuples, not dataclasses: these are made whenever sigwrap starts, at an eighth of the time.
"""

from __future__ import annotations

from sigwrap.bare.enum import Enum
from sigwrap.policy.judge.network import SOCKETS, UNIX, Direction, Protocol
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
    """What a text must look like, and how variables are put into it."""

    PLAIN = "any text, taken as it is"
    TEMPLATE = "text, with variables"
    HOST_TEMPLATE = "text, with variables and ${SIGWRAP_HOST:NAME}"
    NAME = "letters, digits, `.`, `_` and `-`"
    VARIABLE = "letters, digits and `_`"
    NAME_GLOB = "a glob on a variable's whole name"
    GLOB = "a glob, with variables"
    PROGRAM = "a name or a path, each a glob, with variables"
    PATH = "a path, which is a glob, with variables"
    FILE = "a path, with variables"
    DESTINATION = "a host name, an address, a network, a word, or `unix:` and a socket's path"
    PLACE = "a file, or a folder with everything beneath; its names are globs, with variables"
    SUBCOMMAND = "one to three words, none an option"
    REGEX = "an RE2 regular expression, with variables"
    DIGEST = "a SHA-256 in 64 hexadecimal digits"
    SIGNAL = "a signal's name or number"
    SIGNALS = "a signal's name or number, or a group"
    BASE = "the name of a shipped policy, or a file beside this one"


# What all of a text of such a form matches; JSON Schema and Python's `re` read these alike.
PATTERNS: dict[Form, str] = {
    Form.NAME: "[A-Za-z0-9][A-Za-z0-9._-]*",
    Form.VARIABLE: "[A-Za-z_][A-Za-z0-9_]*",
    Form.NAME_GLOB: "[^=$\\x00]+",
    Form.DIGEST: "[0-9a-fA-F]{64}",
    Form.SUBCOMMAND: "(?:-|(?!-)[\\s\\S]*)",
}


class Text(NamedTuple):
    form: Form = Form.PLAIN


class Word(NamedTuple):
    words: tuple[str, ...]


class Number(NamedTuple):
    minimum: int = 0
    maximum: int = 2**31 - 1


class Flag(NamedTuple):
    pass


class Duration(NamedTuple):
    """Seconds, or a number with s, m or h."""


class Size(NamedTuple):
    """Bytes, or a number with K, M or G."""


class ListOf(NamedTuple):
    item: Shape
    minimum: int = 0


class MapOf(NamedTuple):
    key: Text
    value: Shape


class Group(NamedTuple):
    title: str
    keys: tuple[Key, ...]


class OneOf(NamedTuple):
    """At most one option per YAML kind (scalar, list, mapping): the kind picks the option."""

    options: tuple[Shape, ...]


Shape = Text | Word | Number | Flag | Duration | Size | ListOf | MapOf | Group | OneOf


class Key(NamedTuple):
    name: str
    shape: Shape
    meaning: str
    required: bool = False


def _key(name: str, shape: Shape, meaning: str, *, required: bool = False) -> Key:
    return Key(name=name, shape=shape, meaning=meaning, required=required)


_NAME = _key("name", Text(form=Form.NAME), "shown in events, messages and `explain`", required=True)
_DESCRIPTION = _key("description", Text(), "for the reader")
_MESSAGE = _key(
    "message",
    Text(form=Form.TEMPLATE),
    "written on the caller's stderr with a denial or a question",
)
_ESCALATE = _key(
    "escalate",
    Word(words=("SIGPOLICY",)),
    "when the rule has decided something, whatever it was, and its event is recorded, SIGPOLICY is "
    "sent: the whole tree is killed",
)

_REDIRECT = Group(
    title="redirect_to",
    keys=(
        _key(
            "command",
            Text(form=Form.TEMPLATE),
            "the replacement: the program that runs instead; also its argv[0]",
            required=True,
        ),
        _key("args", ListOf(item=Text(form=Form.TEMPLATE)), "its arguments"),
        _key("append_args", Flag(), "keep the original arguments behind `args`; default false"),
        _key(
            "env",
            MapOf(key=Text(form=Form.VARIABLE), value=Text(form=Form.HOST_TEMPLATE)),
            "variables added for it; `${SIGWRAP_HOST:NAME}` is sigwrap's own value of NAME, "
            "whatever `env_policy` removes",
        ),
        _key(
            "via",
            Word(words=("exec", "stub")),
            "whose environment the replacement gets, besides `env`. `exec` (default): the "
            "caller's. `stub`: that of COMMAND's start and nothing of the caller's, who isn't "
            "given it. Either way it runs in the caller's process, but for `record`",
        ),
        _key(
            "record",
            Flag(),
            "with `via: stub`: the caller becomes sigwrap-stub, the replacement runs as its child, "
            "and what goes through the child's standard streams is in the log, as it is; default "
            "false",
        ),
    ),
)

_DEPTH = Group(
    title="depth",
    keys=(
        _key("min", Number(), "at least this deep; COMMAND is 0, its children 1"),
        _key("max", Number(), "at most this deep"),
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
            "what would run. Without a slash: its name, as called or with links resolved. With a "
            "slash: its full path, links resolved; `./x` and `bin/x` start at `${PROJECT_ROOT}`, "
            '`~/x` at `${HOME}`. `"*"`: everything. In globs, `*` and `?` stop at a slash, `**` '
            "doesn't, and a `**` at the start stands for any folders",
            required=True,
        ),
        _key(
            "args_patterns",
            ListOf(item=Text(form=Form.REGEX), minimum=1),
            "one of these is found in a single argument, or in all of them joined by one space "
            "(argv[0] left out). `.` matches a line's end too; `^` and `$` are the text's ends",
        ),
        _key(
            "subcommands",
            ListOf(item=Text(form=Form.SUBCOMMAND), minimum=1),
            "the first argument that is no option is one of these, or the first two or three, as "
            'in `"pr merge"`; `""`: there is none. For tools that sigwrap knows, values of options '
            "are skipped, and the tool's own short forms count",
        ),
        _key(
            "paths",
            ListOf(item=Text(form=Form.PATH), minimum=1),
            "one of the arguments, or what follows its `=`, means one of these files: `.`, `..`, "
            "doubled slashes, `~`, `/proc/self/root` and a `*` at the end are resolved, and "
            "relative paths start at the caller's folder; symbolic links are not. In the rule, `~` "
            "is `${HOME}`, and what is relative starts at `${PROJECT_ROOT}`",
        ),
        _key(
            "sources",
            ListOf(item=Text(form=Form.PATH), minimum=1),
            "the same, but not of the last argument: what `mv` and `cp` take, not where to",
        ),
        _key("depth", _DEPTH, "how far below COMMAND the caller is"),
        _key(
            "sha256",
            ListOf(item=Text(form=Form.DIGEST), minimum=1),
            "the file's digest is one of these",
        ),
        _key(
            "not_sha256",
            ListOf(item=Text(form=Form.DIGEST), minimum=1),
            "the file's digest is none of these; one that can't be had is none of them to a rule "
            "that denies, asks or redirects, and keeps one that allows or audits from matching",
        ),
        _key("truncated", Flag(), "the arguments were (not) too long to be judged whole"),
        _key(
            "traced",
            Flag(),
            "the caller is (not) being traced, or the program may be executed but not read (or "
            "neither)",
        ),
        _key(
            "system_file",
            Flag(),
            "only root can (somebody else can) change the file, and the link and the folder that "
            "it was called by: one of the system's own programs",
        ),
        _key(
            "loads_code",
            Flag(),
            "a variable that makes this program load code, or run another program, is (not) set "
            "in the exec's environment, other than COMMAND was given it: `LD_PRELOAD`, "
            "`NODE_OPTIONS`, `GIT_SSH_COMMAND`…",
        ),
        _key("decision", Word(words=COMMAND_DECISIONS), "what happens", required=True),
        _MESSAGE,
        _key("redirect_to", _REDIRECT, "with `decision: redirect`: what runs instead"),
        _ESCALATE,
    ),
)

_TARGET_MAPPING = Group(
    title="target",
    keys=(
        _key(
            "type",
            Word(words=(*TARGET_WORDS, "process", "pid_range")),
            "which processes",
            required=True,
        ),
        _key(
            "pattern",
            Text(form=Form.GLOB),
            "a glob on the target's command name: with `process`, of whichever kind the target is; "
            "with another type, both must hold",
        ),
        _key("min", Number(minimum=1), "with `pid_range`: the first pid"),
        _key("max", Number(minimum=1), "with `pid_range`: the last pid"),
    ),
)
_TARGET_ITEM = OneOf(options=(Word(words=TARGET_WORDS), _TARGET_MAPPING))

_SIGNAL_RULE = Group(
    title="signal_rules",
    keys=(
        _NAME,
        _DESCRIPTION,
        _key(
            "signals",
            ListOf(item=Text(form=Form.SIGNALS), minimum=1),
            "names, numbers, `SIGRTMIN+n`, or the groups `@fatal @job @reload @ignore @halt "
            "@crash @lethal @all`",
            required=True,
        ),
        _key(
            "target",
            OneOf(
                options=(
                    Word(words=TARGET_WORDS),
                    ListOf(item=_TARGET_ITEM, minimum=1),
                    _TARGET_MAPPING,
                )
            ),
            "a word, a mapping with `type`, or a list of these, of which one must hold. A target "
            "is several things at once: a child is also a descendant and in the session. Left "
            "out: every target",
        ),
        _key(
            "handled",
            Flag(),
            "the target catches or ignores the signal (doesn't); SIGKILL and SIGSTOP nobody can",
        ),
        _key("decision", Word(words=SIGNAL_DECISIONS), "what happens", required=True),
        _MESSAGE,
        _key(
            "redirect_to",
            Text(form=Form.SIGNAL),
            "with `decision: redirect`: the signal sent instead",
        ),
        _key("fallback", Word(words=("allow", "audit")), "what happens where it can't be enforced"),
        _key("log", Flag(), "with `decision: allow`: false leaves it out of the log (see Noise)"),
        _ESCALATE,
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
            "files, and folders with everything beneath, which `/**` at the end says as well. "
            "`*`, `?` and `[a-z]` stand for characters of one name",
            required=True,
        ),
        _key(
            "operations",
            ListOf(item=Word(words=OPERATIONS), minimum=1),
            "what is done: `read` is of a file's content (names in folders can always be read), "
            "`create` and `delete` are of a name in a folder, renames and links among them",
            required=True,
        ),
        _key("decision", Word(words=FILE_DECISIONS), "what happens", required=True),
        _key(
            "make_missing",
            Flag(),
            "with `decision: allow`: folders among `paths` (written without a glob) that don't "
            "exist are made before COMMAND starts, and removed at its end if they are still empty",
        ),
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
            "host names, addresses, networks as `192.0.2.0/24`, `loopback`, `private`, `*` for "
            "every address, sockets as `unix:/run/x.sock`, `unix:@name` (globs), or by one of our "
            "words: " + ", ".join(f"`{UNIX}{word}`" for word in SOCKETS),
            required=True,
        ),
        _key(
            "ports",
            ListOf(item=Number(minimum=1, maximum=65535), minimum=1),
            "left out: every port",
        ),
        _key(
            "protocol",
            Word(words=tuple(each.value for each in Protocol)),
            "left out: every one",
        ),
        _key(
            "direction",
            Word(words=tuple(each.value for each in Direction)),
            "whether the session connects or sends there, or binds to it; default connect",
        ),
        _key("decision", Word(words=PLAIN_DECISIONS), "what happens", required=True),
        _MESSAGE,
    ),
)

_TEST_CASE = Group(
    title="tests",
    keys=(
        _key(
            "command",
            OneOf(options=(Text(), ListOf(item=Text(), minimum=1))),
            "a command line, split at spaces and quotes as a shell would, or a list of words",
        ),
        _key("depth", Number(), "how deep the caller is; default 1"),
        _key("truncated", Flag(), "default false"),
        _key("traced", Flag(), "default false"),
        _key("system_file", Flag(), "default: whether the path is in one of the system's folders"),
        _key("loads_code", Flag(), "default: whether a wrapper in `command` sets such a variable"),
        _key(
            "cwd", Text(form=Form.TEMPLATE), "the folder it is called in; default `${PROJECT_ROOT}`"
        ),
        _key("signal", Text(form=Form.SIGNAL), "a signal, instead of a command"),
        _key(
            "target",
            OneOf(options=(Word(words=TARGET_WORDS), ListOf(item=Word(words=TARGET_WORDS)))),
            "who it is sent to",
        ),
        _key("target_command", Text(), "the target's command name"),
        _key("target_pid", Number(minimum=1), "the target's pid"),
        _key("handled", Flag(), "the target handles the signal; default false"),
        _key("file", Text(form=Form.FILE), "a path, instead of a command"),
        _key("operation", Word(words=OPERATIONS), "what is done with it"),
        _key("connect", Text(), "whom it talks to, instead of a command: `example.com:443`"),
        _key("listen", Text(), "where a server is, instead of a command: `127.0.0.1:80`"),
        _key("protocol", Word(words=("tcp", "udp")), "by which it talks; default tcp"),
        _key("decision", Word(words=SIGNAL_DECISIONS), "what must come out", required=True),
        _key("rule", Text(), "the rule that must decide it"),
    ),
)

POLICY = Group(
    title="policy",
    keys=(
        _key("version", Number(minimum=1, maximum=1), "of the language: 1", required=True),
        _NAME,
        _DESCRIPTION,
        _key(
            "extends",
            Text(form=Form.BASE),
            "a base: this file's rules go before the base's, its other keys replace the base's",
        ),
        _key(
            "unenforced",
            Word(words=("warn", "error")),
            "what follows where `file_rules` or `network_rules` can't be held: nothing runs "
            "(`error`, the default), or it runs without them, with a line that says so",
        ),
        _key(
            "approvals",
            Word(words=("ask", "deny")),
            "what `approve` comes to: somebody is asked (default), or it is denied, for there is "
            "nobody to ask",
        ),
        _key(
            "defaults",
            Group(
                title="defaults",
                keys=(
                    _key(
                        "command",
                        Word(words=PLAIN_DECISIONS),
                        "when no command rule matches; absent: deny",
                    ),
                    _key(
                        "signal",
                        Word(words=(*PLAIN_DECISIONS, "absorb")),
                        "when no signal rule matches; absent: deny",
                    ),
                    _key(
                        "file",
                        Word(words=FILE_DECISIONS),
                        "when no file rule matches; absent: allow",
                    ),
                    _key(
                        "network",
                        Word(words=PLAIN_DECISIONS),
                        "when no network rule matches; absent: allow",
                    ),
                ),
            ),
            "the answer when no rule matches",
        ),
        _key(
            "vars",
            MapOf(key=Text(form=Form.VARIABLE), value=Text(form=Form.PLAIN)),
            "variables for the other texts; one may use the built-in ones and those above it",
        ),
        _key("command_rules", ListOf(item=_COMMAND_RULE), "who may run what; first match wins"),
        _key("signal_rules", ListOf(item=_SIGNAL_RULE), "who may signal whom; first match wins"),
        _key("file_rules", ListOf(item=_FILE_RULE), "which files may be touched; first match wins"),
        _key("network_rules", ListOf(item=_NETWORK_RULE), "which hosts may be reached"),
        _key(
            "env_policy",
            Group(
                title="env_policy",
                keys=(
                    _key(
                        "remove",
                        ListOf(item=Text(form=Form.NAME_GLOB)),
                        "names of variables that are taken out of COMMAND's environment, and of "
                        "that of a `via: stub` replacement. In globs, `*`, `?` and `[a-z]`; "
                        "case matters. `SIGWRAP_KEY` is always taken out",
                    ),
                    _key(
                        "keep",
                        ListOf(item=Text(form=Form.NAME_GLOB)),
                        "names of variables that stay although `remove` has them",
                    ),
                ),
            ),
            "which environment variables COMMAND gets",
        ),
        _key(
            "limits",
            Group(
                title="limits",
                keys=(
                    _key(
                        "max_depth",
                        Number(),
                        "how deep the tree may get: a deeper process's exec is denied",
                    ),
                    _key(
                        "max_children",
                        Number(),
                        "children of one process, at a time; checked when one of them execs, and "
                        "at forks with `at_fork`",
                    ),
                    _key(
                        "max_processes",
                        Number(),
                        "processes of the session, at a time, zombies among them, threads not; "
                        "checked when one of them execs, and at forks with `at_fork`",
                    ),
                    _key(
                        "at_fork",
                        Flag(),
                        "the three above are checked at forks too: a fork that would pass one of "
                        "them fails with EAGAIN. The price: each fork takes about 60 µs more, and "
                        "may fail with EINTR where a handler without SA_RESTART runs just then, "
                        "other than for the end of a child; default false",
                    ),
                    _key(
                        "max_execs",
                        Number(),
                        "execs over the whole run, COMMAND's among them; the next exec is denied, "
                        "and the run ended: exit status 124",
                    ),
                    _key(
                        "wall_time",
                        Duration(),
                        "how long the run may take, until it is ended: exit status 124",
                    ),
                    _key(
                        "cpu_time",
                        Duration(),
                        "processor time of the whole tree, of all its processes and threads, until "
                        "the run is ended: exit status 124. Looked at when it may be used up, at "
                        "least every 5 s and at most every 0.1 s",
                    ),
                    _key(
                        "memory",
                        Size(),
                        "memory of the whole tree, resident and swapped, with its page tables, "
                        "until the run is ended: exit status 124. What processes share counts "
                        "once. Looked at every 0.05 to 1 s, the more often the less is left",
                    ),
                    _key(
                        "log_size",
                        Size(),
                        "how large the session's event log may get, of which half is said to be "
                        "used up on stderr and by an event; default 1G, and `--log-size` comes "
                        "before it",
                    ),
                    _key(
                        "at_log_size",
                        Word(words=LOG_REACTIONS),
                        "what happens then: `end` ends the run (exit status 124), `deny` denies "
                        "every exec and signal that would be in it from then on; default end",
                    ),
                ),
            ),
            "what a run may use; 0 or left out: no limit",
        ),
        _key(
            "session",
            Group(
                title="session",
                keys=(
                    _key(
                        "mounts",
                        Flag(),
                        "whether programs may mount file systems, as `bwrap`, `podman` and "
                        "`unshare -m` do. false: nobody inside mounts anything, and nobody writes "
                        "to a file of a cgroup file system, with which others can be stopped and "
                        "killed. true: both are as without sigwrap. Left out: false for an "
                        "ordinary user who may write to a cgroup that others are in, as systemd's "
                        "desktops let everybody, and where file_rules deny anything; else true",
                    ),
                ),
            ),
            "what the session as a whole may do",
        ),
        _key(
            "watch",
            Group(
                title="watch",
                keys=(
                    _key(
                        "loop",
                        Group(
                            title="watch.loop",
                            keys=(
                                _key(
                                    "same_exec",
                                    Number(minimum=2),
                                    "how many execs of the same file, arguments and folder",
                                    required=True,
                                ),
                                _key("within", Duration(), "within which time", required=True),
                                _key("action", Word(words=REACTIONS), "what follows; default log"),
                            ),
                        ),
                        "the same exec over and over sends SIGLOOP: once, until that exec has not "
                        "come for longer than `within`",
                    ),
                    _key(
                        "drift",
                        Word(words=REACTIONS),
                        "what follows from SIGDRIFT, which an exec outside of the profile sends "
                        "(`--profile FILE`); default log",
                    ),
                ),
            ),
            "what is watched for over time",
        ),
        _key(
            "trust",
            Group(
                title="trust",
                keys=(
                    _key(
                        "path_shadow",
                        Word(words=("audit", "deny")),
                        "what follows where a program is found along PATH outside of the system's "
                        "folders, and one of the system's has its name: it is marked (default), or "
                        "denied",
                    ),
                    _key(
                        "boundary",
                        Word(words=REACTIONS),
                        "what follows from the SIGTRUST that an attempt on sigwrap itself sends; "
                        "default log. Nothing follows from that of a shadow",
                    ),
                ),
            ),
            "trust boundaries",
        ),
        _key("tests", ListOf(item=_TEST_CASE), "cases for `policy test`"),
    ),
)
