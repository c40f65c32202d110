"""What a variable has a program run: `GIT_EDITOR=…`, `MAKEFLAGS=…`, `GIT_CONFIG_COUNT=…`."""

from __future__ import annotations

from collections.abc import Iterator

from sigwrap.bare import re
from sigwrap.hooks.started import (
    COMPILER,
    ENDS_A_COMMAND,
    NOT_READ,
    Started,
    is_no_file,
    line_with_more,
    line_with_operand,
)
from sigwrap.hooks.words import NOT_KNOWN, Word
from sigwrap.hooks.wrapped import basename
from sigwrap.policy.judge.match import UNTOLD

# Each gets the name of a file, or text on its standard input.
_LINES = frozenset(
    "GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER GIT_EXTERNAL_DIFF GIT_ASKPASS SSH_ASKPASS "
    "SUDO_ASKPASS WGET_ASKPASS SUDO_EDITOR EDITOR VISUAL PAGER MANPAGER SYSTEMD_PAGER "
    "SYSTEMD_EDITOR GH_PAGER GH_EDITOR PSQL_PAGER PSQL_EDITOR "
    "LESSOPEN LESSCLOSE PROMPT_COMMAND".split()
)
_LINES_WITH_MORE = frozenset(
    "GIT_SSH GIT_SSH_COMMAND GIT_PROXY_COMMAND RSYNC_RSH RSYNC_CONNECT_PROG".split()
)
_OPTIONS = {"MAKEFLAGS": "make", "GNUMAKEFLAGS": "make", "TAR_OPTIONS": "tar"}
_AT_THE_TOP = frozenset({"GIT_EDITOR", "EDITOR", "VISUAL", "GIT_EXTERNAL_DIFF"})  # of git's tree
_FILES = frozenset({"BASH_ENV", "ENV", "MAKEFILES"})
_PROMPTS = frozenset({"PS0", "PS1", "PS2", "PS4"})  # decoded and then expanded
_LIKE_BASH = frozenset({"bash", "sh", "dash", "ash"})
_HARMLESS_EDITOR = re.compile(r"(:|true|cat|sed(?!.*(exec|\bx\b)).*)", re.DOTALL)
_FOR_COMPILERS = frozenset(
    "CFLAGS CXXFLAGS CPPFLAGS ASFLAGS LDFLAGS LDLIBS ARFLAGS TARGET_ARCH OUTPUT_OPTION".split()
)
_NOT_READ = tuple(
    "GIT_CONFIG GIT_EXEC_PATH GIT_ALLOW_PROTOCOL GIT_TEMPLATE_DIR BASH_FUNC_ BASHOPTS SHELLOPTS "
    "POSIXLY_CORRECT".split()
)


def started_by(name: str, value: Word) -> Iterator[Started]:
    if value.text in ("", "/dev/null") or name == "GIT_CONFIG_NOSYSTEM":
        return
    is_quoted = not {"\\", "'", '"', "`"}.isdisjoint(value.text)
    is_compiler = COMPILER.fullmatch(name) is not None
    if (
        name.startswith(_NOT_READ)
        or (name in _FILES and (is_no_file(value) or "$" in value.text or "`" in value.text))
        or ((is_compiler or name in _FOR_COMPILERS) and ENDS_A_COMMAND.search(value.text))
        or (name == "SHELL" and basename(value.text) not in _LIKE_BASH)
        or (name == "GIT_SEQUENCE_EDITOR" and not _HARMLESS_EDITOR.fullmatch(value.text))
        or (name in _PROMPTS and (is_quoted or not value.known))
        or (name in _OPTIONS and is_quoted)
    ):
        yield Started(unknown=NOT_READ)
    elif name in _LINES:
        yield line_with_operand(value.text.lstrip("|-"))._replace(moved=name in _AT_THE_TOP)
    elif name in _LINES_WITH_MORE:
        yield line_with_more(value.text)
    elif is_compiler:
        yield Started(words=(*map(Word, value.text.split()), NOT_KNOWN))
    elif name in _OPTIONS:
        words = (Word(each, splits=UNTOLD in each) for each in value.text.split())
        yield Started(words=(Word(_OPTIONS[name]), *words))
