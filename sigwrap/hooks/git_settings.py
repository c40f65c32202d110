"""What git runs by a setting: `-c alias.x='!…'`, `-c core.pager=…`."""

from __future__ import annotations

import shlex
from fnmatch import fnmatchcase

from sigwrap.policy.judge.match import UNTOLD
from sigwrap.tuples import NamedTuple

_LINES = (
    "core.pager core.editor core.sshcommand core.askpass core.gitproxy core.fsmonitor "
    "core.alternaterefscommand sequence.editor pager.* diff.external diff.*.command "
    "diff.*.textconv interactive.difffilter merge.*.driver difftool.*.cmd mergetool.*.cmd "
    "filter.*.clean filter.*.smudge filter.*.process gpg.program gpg.*.program "
    "gpg.ssh.defaultkeycommand remote.*.uploadpack remote.*.receivepack "
    "uploadpack.packobjectshook trailer.*.cmd trailer.*.command tar.*.command browser.*.cmd "
    "man.*.cmd guitool.*.cmd sendemail.*cmd sendemail.smtpserver "
    "imap.tunnel gc.recentobjectshook"
).split()
_LINES_WITH_A_MARK = ("credential.helper", "credential.*.helper", "submodule.*.update")
_ELSEWHERE = (
    "core.hookspath include.path includeif.*.path protocol.allow protocol.*.allow "
    "url.ext::* help.autocorrect init.templatedir remote.*.vcs difftool.*.path mergetool.*.path "
    "browser.*.path man.*.path"
).split()
_OF_A_SHELL = frozenset(";|&`$(<>")  # a helper's name with more behind it goes to one, too
_NO_PROGRAM = frozenset({"true", "false", "yes", "no", "on", "off", ""})  # of pager.*, fsmonitor


class Told(NamedTuple):
    line: str = ""  # of a shell
    words: tuple[str, ...] = ()  # that an alias stands for
    alias: str = ""
    unknown: bool = False


def set_by_git(setting: str) -> Told:
    key, _, value = setting.partition("=")
    section, dot, name = key.partition(".")
    if UNTOLD in key:
        return Told(unknown=True)
    if section.casefold() == "alias" and dot:
        return _alias(name.removesuffix(".command"), value.lstrip())
    key = key.casefold()
    if _is(key, _ELSEWHERE):
        return Told(unknown=True)
    if _is(key, _LINES_WITH_A_MARK):
        is_line = value.startswith(("!", "/", UNTOLD)) or not _OF_A_SHELL.isdisjoint(value)
        return Told(line=value.removeprefix("!")) if is_line else Told()
    if _is(key, _LINES) and value.casefold() not in _NO_PROGRAM:
        return Told(line=value)
    return Told()


def _alias(name: str, value: str) -> Told:
    if value.startswith("!"):
        return Told(line=value[1:], alias=name)
    if UNTOLD in value or ("\\" in value and '"' in value):  # git drops more of them
        return Told(alias=name, unknown=True)
    try:
        return Told(words=tuple(shlex.split(value)), alias=name)
    except ValueError:
        return Told()  # git refuses it too


def _is(key: str, patterns: tuple[str, ...] | list[str]) -> bool:
    return any(fnmatchcase(key, pattern) for pattern in patterns)
