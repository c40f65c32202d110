"""The files and the addresses that a shell line shows, judged by file and network rules.

Each word of a program that looks like a path counts as read; words at the places where a program
writes count as written. What the line only mentions (code, a variable's value) is a reason to ask.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from posixpath import join, normpath

from sigwrap.bare import NamedTuple, Protocol, re
from sigwrap.hooks.calls import BadCall, WebCall, address, web_address
from sigwrap.hooks.shell_line import Command, Line
from sigwrap.hooks.verdict import Finding, asked, finding_of, reads_too_much
from sigwrap.hooks.wrapped import chain_of
from sigwrap.policy.judge.file_words import Use, target, written
from sigwrap.policy.judge.match import UNTOLD
from sigwrap.policy.judge.request import Action, Decision, Operation

MAX_TARGETS = 5_000
_LONGEST_PATH = 4096
_NOWHERE = "/nonexistent/sigwrap"
_NO_HOST = "nonexistent.invalid"

_READS_CONTENT = frozenset(
    "awk base32 base64 bat bzip2 cat cmp cp curl cut dd diff egrep fgrep file gawk grep gzip head "
    "hexdump install jq less ln mawk more mv nl od openssl paste rg rsync scp sed sftp sort split "
    "strings tac tail tar tee uniq wget xxd xz yq zcat zip zstd".split()
)
_LISTS_NAMES = frozenset("ack ag egrep fd fdfind fgrep find git grep ls mktemp rg which".split())
_SAYS_NAMES = _LISTS_NAMES | frozenset("basename date dirname nproc pwd realpath".split())
_PASSES_NAMES = _SAYS_NAMES | frozenset("head sed sort tail tr uniq xargs".split())
# Commands whose output is taken for words, or is fed to another command.
_PRODUCERS = re.compile(
    r"(?:\$\(|<\(|`)\s*([\w./-]+)|(?:^|[;&|(\n])[ \t]*([\w./-]+)[^|;&()\n]*\|(?!\|)"
)
# Such a producer may give text instead of names, or runs more than its first command.
_GIVES_TEXT = re.compile(
    r"(?:\$\(|`)[^()`]*[;&\n]"
    r"|(?:\$\(|`|(?:^|[;&|(\n])(?=[^|;&()\n]*\|(?!\|)))[ \t]*(?:"
    r"git\s+(?!(?:ls-files|rev-parse|merge-base|symbolic-ref|branch|describe|diff\s+--name-only"
    r"|grep\s+-\w*l)\b)|(?:[ef]?grep|rg|ag|ack)\s+(?!-\w*l|--files)"
    r"|find\b[^()`|]*\s-(?:exec|ok|printf))"
)
_READS_TREE = frozenset("7z ack ag ln rg rsync tar zip".split())
_SAVES = frozenset("cp curl install ln mv rsync scp sort tar wget".split())
_SAVES_BY = re.compile(r"-o$|--output$|-fprint|-fls")
_CHANGES = frozenset("crontab fallocate gunzip gzip mktemp patch rename sqlite3 zip".split())
_FILLS = frozenset("cp install ln mv rsync scp split uniq xxd".split())
_EDITORS = ("sed", "perl")  # of files in place
_IN_PLACE = re.compile(r"-[a-zA-Z0-9]*i|--i")
_SCRIPT_FOLLOWS = re.compile(r"-[a-zA-Z0-9]*e$|--e[a-z]*$")
_READS_TREE_BY = {
    name: re.compile(r"-[a-zA-Z]*[rRa]|--(recursive|archive|dereference-recursive)$")
    for name in ("cp", "scp", "grep", "egrep", "fgrep", "diff")
} | {"find": re.compile(r"-(exec|execdir|ok|okdir|delete)$")}
_INTERPRETER = re.compile(
    r"(python|pypy|perl|ruby|php|node|lua)[\d.]*|nodejs|deno|bun|tsx|ts-node|Rscript|julia|tclsh"
    r"|[gmn]?awk"
)
_CODE_FOLLOWS = re.compile(r"-[a-zA-Z]*[ceEpr]|--(eval|print|execute)(=|$)|eval$|-$")
_BUILDS_CODE = re.compile(
    r"(?<![.\w])(exec|eval|compile|__import__|chr|atob)\s*\("
    r"|\b(unhexlify|fromhex|fromCharCode|b64decode)\s*\(|\\x[0-9a-f]{2}|Buffer\.from\(|\bcodecs\b|\bpack\("
)
_CODE_WRITES = re.compile(
    r"""['"][wax]b?\+?['"]|(?i:write|unlink|remove|rename|rmtree|copy|append)|>\s*['"]"""
)
_STATEMENT = re.compile(r"[^;&\n]*")
_QUOTED = re.compile(r"""\\.|'[^']*'|("(?:[^"\\]|\\.)*")""", re.DOTALL)
_QUOTES_IN_QUOTES = re.compile(r"""\$'|"[^"]*(?:\$\(|`)""")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)")
_IN_VARIABLE = re.compile(r"\$(\w+|\{[^{}]{0,99}\})")
_OF_THE_SHELL = frozenset("PWD OLDPWD RANDOM SECONDS LINENO UID EUID PPID HOSTNAME IFS".split())
_PATH_IN_TEXT = re.compile(
    # Each part starts where none could have started before, so the search is linear.
    r"(?<![\w.@%+~}-])(?:~[\w-]*)?(?:[\w.@%+-]*/)+[\w.@%+*?\[\]-]*|(?<![\w./])\.\w[\w.-]*"
)
_URL_IN_TEXT = re.compile(
    r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://[^\s'\"`)>|;]+|\b\d+\.\d+\.\d+\.\d+\b"
)
_OPENS_NOTHING = frozenset(
    "basename chgrp chmod chown dirname echo printf readlink realpath stat which".split()
)

_OPERATIONS = {
    Use.WRITE: Operation.WRITE,
    Use.CREATE: Operation.WRITE,
    Use.FILL: Operation.WRITE,
    Use.DELETE: Operation.DELETE,
}

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_NOT_CLEAR = re.compile(  # to curl: several addresses, or a file by another spelling
    r"(?i:[\w.:/@+-]*[\[{]|file:(?!///[\w./~-]*$))"
)
_NUMERIC_HOST = re.compile(r"(\S*@)?\d+\.\d+\.\d+\.\d+([:/]\S*)?|\[[0-9a-fA-F:.]+\](:\d+)?")
_HOST = re.compile(r"(?:[\w.+-]+@)?([\w.-]+|\[[0-9a-fA-F:.]+\])(?::(\d{1,5}(?!\d))?\S*|/\S*)?")
_PORTS: Mapping[str, int] = {
    **dict.fromkeys(("curl", "wget", "http"), 80),
    **dict.fromkeys(("ssh", "scp", "sftp", "rsync", "mosh"), 22),
    **dict.fromkeys("nc ncat netcat telnet ping ping6 ftp socat traceroute".split(), 0),
}
_GIT_ONLINE = frozenset("archive clone fetch ls-remote pull push remote submodule".split())
_OFFLINE = frozenset(
    "awk basename cat cut diff echo egrep expr fgrep find gawk gh git grep head jq less ls mkdir "
    "printf rg sed sort tail tee test touch tr wc yq".split()
)


class Machine(Protocol):
    def operation(self, operation: Operation, path: str) -> Decision: ...

    def exists(self, path: str, folder: str) -> bool: ...

    def reads_everything_below(self, path: str) -> bool:
        """Return whether no rule denies reading a part of the directory."""

    def connection(self, host: str, port: int) -> Decision | None: ...

    def variable(self, name: str) -> str | None:
        """Return its value in this hook's environment."""


class _Program(NamedTuple):
    name: str
    words: tuple[str, ...]  # behind its name


class LineTargets:
    def __init__(self, line: Line, machine: Machine, policy: str, *, inside: bool) -> None:
        self._line, self._machine, self._policy, self._inside = line, machine, policy, inside
        nothing = machine.operation(Operation.READ, _NOWHERE)
        self._denies_most_reading = nothing.action is Action.DENY
        nothing = machine.operation(Operation.WRITE, _NOWHERE)
        self._denies_most_writing = nothing.action is Action.DENY
        found = machine.connection(_NO_HOST, 443)
        self._denies_most_hosts = found is None or found.action is not Action.ALLOW
        self._mentions: list[str] = []  # text in which a path may be
        self._may_write = self._is_online = False  # to paths and to hosts that the line mentions
        self._is_fed = any(UNTOLD in word.text for each in line.commands for word in each.words)

    def of_command(self, command: Command, words: Sequence[str], folder: str) -> Iterator[Finding]:
        """Judge what a command names; in `words`, the names that match replace each glob."""
        program = _innermost(words)
        if folder and folder != self._line.folder:
            yield from self._path(folder, "/", Operation.READ)
        if not folder or any(UNTOLD in word for word in words):
            self._mentions.append(self._line.text)
            yield from self._unknown_words(command, program, folder)
        if not folder and not self._moves_to_a_name():
            writes = self._denies_most_writing and _written(program)
            if writes or program.name in _READS_CONTENT:
                yield self._asked(command.text, "its directory is not known in advance")
        if _runs_code(program):
            self._mentions.append(self._line.text)
            self._may_write |= _CODE_WRITES.search(self._line.text) is not None
            if _BUILDS_CODE.search(self._line.text):
                yield self._asked(command.text, "its code builds names or code as it runs")
        before = tuple(words[1 : len(words) - len(program.words) - 1])  # of env, sudo, xargs
        yield from self._files(_Program("", before), folder)
        yield from self._files(program, folder)
        yield from self._addresses(program)

    def _moves_to_a_name(self) -> bool:
        """Return whether only commands that name directories say where `cd` leads."""
        target = _STATEMENT.match(self._line.text.rpartition("cd ")[2])
        return target is not None and _names_files(target[0])

    def shows_values_of(self, text: str) -> bool:
        """Return whether a redirection's file is a variable, and the line shows its values."""
        found = re.fullmatch(r'\d*< *"?\$(\w+)"?', text)
        if found is None or found[1] not in self._line.variables - self._line.unsure:
            return False
        self._mentions.append(self._line.text)
        return True

    def of_mentions(self) -> Iterator[Finding]:
        """Judge what the line mentions in code or hides behind a variable."""
        if self._is_online:
            yield from self._mentioned_hosts(self._line.text)
        for text in dict.fromkeys(self._mentions):
            yield from self._mentioned(text)

    # Files

    def _files(self, program: _Program, folder: str) -> Iterator[Finding]:
        if program.name in _OPENS_NOTHING:
            return
        written = _written(program)
        goes_below = self._goes_below(program)
        if goes_below and folder and folder != self._line.folder:
            yield from self._below(folder, "/")
        for at, word in enumerate(program.words[:MAX_TARGETS]):
            for path in _paths(word):
                if not (folder or path.startswith("/")):
                    continue
                operation = written.get(at, Operation.READ)
                if operation is not Operation.READ and path == target(word):
                    if not _may_be_a_script(program, at) or self._machine.exists(path, folder):
                        yield from self._path(path, folder, operation)
                    continue
                if not _looks_like_a_path(path) and not self._machine.exists(path, folder):
                    continue
                yield from self._path(path, folder, Operation.READ)
                if self._may_be_written(program, at):
                    yield from self._written_perhaps(path, folder)
                if goes_below:
                    yield from self._below(path, folder)
        if len(program.words) > MAX_TARGETS:
            yield self._asked(program.name, "it has too many words")

    def _path(self, path: str, folder: str, operation: Operation) -> Iterator[Finding]:
        whole = join(folder, path)
        if operation is Operation.WRITE and not self._machine.exists(whole, "/"):
            operation = Operation.CREATE
        decision = self._machine.operation(operation, whole)
        is_by_default = operation is Operation.READ and self._denies_most_reading
        if is_by_default and not self._machine.exists(whole, "/"):
            return
        what = f"{operation.value} {normpath(whole)}"
        yield finding_of(what, decision, self._policy, inside=self._inside)

    def _may_be_written(self, program: _Program, at: int) -> bool:
        """Return whether a word that looks like a source may be a target after all: options of
        programs have many spellings."""
        name, words = program
        word, before = words[at], words[at - 1] if at else ""
        if word.startswith(("-", "@")):
            return name in _SAVES and word.startswith("-")
        is_linked = name == "ln" and len(self._line.commands) > 1
        if name in _FILLS and not is_linked:
            return any(not each.startswith("-") for each in words[:at])
        is_value = name in _SAVES and before.startswith("-")
        return is_linked or is_value or name in _CHANGES or _SAVES_BY.match(before) is not None

    def _written_perhaps(self, path: str, folder: str) -> Iterator[Finding]:
        decision = self._machine.operation(Operation.WRITE, join(folder, path))
        if decision.action is Action.DENY:
            why = f"rule {decision.rule} denies writing {path}, if it is a target"
            yield self._asked(path, why)

    def _below(self, path: str, folder: str) -> Iterator[Finding]:
        whole = normpath(join(folder, path))
        if self._denies_most_reading and not self._machine.exists(whole, "/"):
            return
        if not self._machine.reads_everything_below(whole):
            yield reads_too_much(whole, inside=self._inside)

    def _goes_below(self, program: _Program) -> bool:
        if program.name in _READS_TREE or (self._is_fed and program.name in _LISTS_NAMES):
            return program.name != "git"
        by = _READS_TREE_BY.get(program.name)
        return by is not None and any(map(by.match, program.words))

    # What is not known

    def _reads_all_in(self, path: str, folder: str) -> bool:
        """Return whether no rule denies reading something beside or below the path."""
        above = normpath(join(folder, path.rpartition("/")[0] or "/"))
        return self._machine.reads_everything_below(above)

    def _unknown_words(self, command: Command, program: _Program, folder: str) -> Iterator[Finding]:
        unknown = {at for at, word in enumerate(program.words) if UNTOLD in word}
        is_written = self._denies_most_writing and not unknown.isdisjoint(_written(program))
        verb = "writes" if is_written else "reads"
        self._may_write |= is_written
        if not unknown or (verb == "reads" and program.name not in _READS_CONTENT):
            return
        for at in unknown:
            known = target(program.words[at]).partition(UNTOLD)[0]
            if "/" not in known or not folder:
                continue
            if not self._reads_all_in(known, folder):
                yield self._asked(command.text, "it may read what a rule denies")
            if is_written:
                yield from self._written_perhaps(f"{known}x", folder)
        text = _without_quoted(command.text)
        names = set(_VARIABLE.findall(text)) - _OF_THE_SHELL
        own = names & self._line.variables
        elsewhere = names - self._line.variables
        values = {name: self._machine.variable(name) for name in elsewhere}
        self._mentions += [value for value in values.values() if value]
        unset = sorted(name for name, value in values.items() if value is None)
        is_output = "$(" in text or "`" in text
        is_fed = not names and not {"$", "{"} & {*text} and UNTOLD in program.words
        by_find = is_fed and text.startswith("find ")
        if unset:
            yield self._asked(command.text, f"the value of ${unset[0]} is not known in advance")
        elif (is_output and not _names_files(text)) or (
            (is_fed or own & self._line.unsure)
            and not by_find
            and not _names_files(self._line.text)
        ):
            yield self._asked(command.text, f"the files that it {verb} are not known in advance")

    def _mentioned(self, text: str) -> Iterator[Finding]:
        home = self._machine.variable("HOME") or ""
        text = _IN_VARIABLE.sub("", text.replace("${HOME}", home).replace("$HOME", home))
        for found in dict.fromkeys(_PATH_IN_TEXT.findall(text)[:MAX_TARGETS]):
            beyond = found.partition("/")[2] if found.startswith("~") else found.lstrip("/")
            for path in (found, join(home, beyond)):
                whole = normpath(join(self._line.folder, path))
                if not whole.startswith("/") or len(whole) > _LONGEST_PATH:
                    continue
                decision = self._machine.operation(Operation.READ, whole)
                is_meant = not self._denies_most_reading or self._machine.exists(whole, "/")
                verb = "reading"
                if self._may_write and not (decision.action is Action.DENY and is_meant):
                    decision = self._machine.operation(Operation.WRITE, whole)
                    is_meant, verb = path == found or found.startswith("~"), "writing"
                if decision.action is Action.DENY and is_meant:
                    why = f"rule {decision.rule} denies {verb} {whole}, which the line mentions"
                    yield self._asked(found, why)
                    break
        yield from self._mentioned_hosts(text)

    def _mentioned_hosts(self, text: str) -> Iterator[Finding]:
        if self._denies_most_hosts:
            return
        for url in dict.fromkeys(_URL_IN_TEXT.findall(text)[:MAX_TARGETS]):
            call = _address_in(url, 80)
            denied = self._machine.connection(call.host, call.port) if call else None
            if call and denied is not None and denied.action is not Action.ALLOW:
                why = f"rule {denied.rule} is about {call.host}, which the line mentions"
                yield self._asked(url, why)

    def _asked(self, what: str, why: str) -> Finding:
        return asked(what, why, inside=self._inside)

    # Addresses

    def _addresses(self, program: _Program) -> Iterator[Finding]:
        is_git_online = program.name == "git" and not _GIT_ONLINE.isdisjoint(program.words)
        if program.name in _OFFLINE and not is_git_online:
            return
        is_online = program.name in _PORTS or is_git_online
        self._is_online |= is_online
        port = _PORTS.get(program.name, 22)
        for at, word in enumerate(program.words):
            value = word.partition("=")[2] if word.startswith("-") else word
            if UNTOLD in value or value.lower().startswith(("file://", "unix://")):
                continue
            is_operand = at == 0 or not program.words[at - 1].startswith("-")
            if program.name == "curl" and is_operand and _NOT_CLEAR.match(value):
                yield self._asked(word, "its address is not clear")
            is_sure = _SCHEME.match(value) or _NUMERIC_HOST.fullmatch(value)
            is_bare = is_online and not word.startswith("-") and _HOST.fullmatch(word)
            if is_git_online and "@" not in word:
                is_bare = None
            if not is_sure and not is_bare:
                continue
            following = program.words[at + 1] if at + 1 < len(program.words) else ""
            wanted = int(following) if following.isdecimal() and len(following) < 6 else port
            call = _address_in(value, wanted)
            decision = self._machine.connection(call.host, call.port) if call else None
            if call is None or decision is None:
                if is_online and is_sure:
                    yield self._asked(word, "its address is not clear")
            elif is_sure or is_operand or not self._denies_most_hosts:
                what = f"connect to {call.host}:{call.port}"
                yield finding_of(what, decision, self._policy, inside=self._inside)


def _innermost(words: Sequence[str]) -> _Program:
    name, argv = [*chain_of(words)][-1]
    return _Program(name, tuple(argv[1:]))


def _names_files(text: str) -> bool:
    """Return whether commands that only name files give the words that are not known."""
    found = _PRODUCERS.findall(text)
    if _GIVES_TEXT.search(text):
        return False
    return bool(found) and all(
        first in _SAYS_NAMES if first else later in _PASSES_NAMES for first, later in found
    )


def _without_quoted(text: str) -> str:
    """Return the text without what nothing is expanded in, if that is sure."""
    if _QUOTES_IN_QUOTES.search(text):
        return text
    return _QUOTED.sub(lambda found: found[1] or "", text)


def _runs_code(program: _Program) -> bool:
    """Return whether its arguments or its standard input are code."""
    if not _INTERPRETER.fullmatch(program.name):
        return False
    operands = [word for word in program.words if not word.startswith("-")]
    return (
        not operands or program.name.endswith("awk") or any(map(_CODE_FOLLOWS.match, program.words))
    )


def _paths(word: str) -> Iterator[str]:
    """Yield what in a word may be a path: all of it, an option's value, what is before a colon."""
    if _SCHEME.match(word):
        if word.lower().startswith("file://"):
            yield word[len("file://") :]
        return
    parts = [target(word), word.partition(":")[0] if not word.startswith("-") else ""]
    if "@" in word:
        parts.append(word.rpartition("@")[2])
    for part in dict.fromkeys(parts):
        if part and UNTOLD not in part and "\n" not in part and len(part) <= _LONGEST_PATH:
            yield part


def _looks_like_a_path(text: str) -> bool:
    return "/" in text or text in (".", "..")


def _written(program: _Program) -> dict[int, Operation]:
    """Return the places of the words that name what the program writes or deletes."""
    name, words = program
    moved = [at for at, word in enumerate(words) if not word.startswith("-")]
    deleted = dict.fromkeys(moved if name == "mv" else (), Operation.DELETE)
    if name in _EDITORS and any(map(_IN_PLACE.match, words)):
        return dict.fromkeys(moved, Operation.WRITE)
    return deleted | {at: _OPERATIONS[use] for at, use in written(name, words).items()}


def _may_be_a_script(program: _Program, at: int) -> bool:
    """Return whether a word of `sed -i` may be its script, such as `/pattern/d`."""
    name, words = program
    if name not in _EDITORS:
        return False
    is_value = at > 0 and _SCRIPT_FOLLOWS.match(words[at - 1]) is not None
    return is_value or any(not each.startswith("-") for each in words[at + 1 :])


def _address_in(text: str, port: int) -> WebCall | None:
    if _SCHEME.match(text):
        try:
            return web_address(text)
        except BadCall:
            return None
    found = _HOST.fullmatch(text)
    if found is None:
        return None
    return WebCall(address(found[1].strip("[]").lower()), int(found[2]) if found[2] else port)
