"""The words of a git command: settings that run something, and the subcommand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sigwrap.bare import NamedTuple, re
from sigwrap.hooks.words import Word
from sigwrap.policy.judge.match import UNTOLD

_WITH_VALUE = frozenset(
    "-C --git-dir --work-tree --namespace --super-prefix --attr-source --shallow-file".split()
)
_KNOWN = re.compile(
    "-[pPhvC]|--((no-|git-dir|work-tree|namespace|attr-source|super-prefix|shallow-file|"
    "html-|man-|info-|list-).*|bare|paginate|version|help|.*-pathspecs)"
)
_MOVES = frozenset({"-C", "--git-dir", "--work-tree"})
_HARMLESS = re.compile(
    r"(user|author|committer|color|advice|safe|commit|tag|log|pull|push|fetch|rebase|rerere|status"
    r"|branch|column|index|pack|http|maintenance|feature|extensions)\..*"
    r"|core\.(quotepath|autocrlf|safecrlf|filemode|symlinks|ignorecase|longpaths|eol|bare|abbrev"
    r"|compression|excludesfile|whitespace|commentchar|preloadindex|untrackedcache)=.*"
    r"|(init\.defaultbranch|protocol\.version|gpg\.format|submodule\.(recurse|fetchjobs)|gc\.auto)=.*"
    r"|diff\.(renames|noprefix|mnemonicprefix|context|algorithm|color\w*|renamelimit)=.*"
    r"|merge\.(conflictstyle|renames|renamelimit|ff|log|stat)=.*"
    r"|remote\.[^=]*\.(url|pushurl|fetch|push|mirror|prune)=(?!ext::).*"
    r"|url\.https?://[^=]*\.(push)?insteadof=.*"
    r"|(core\.pager|pager\.\w+|core\.editor|sequence\.editor|core\.fsmonitor|credential\.helper)="
    r"(true|false|:|cat|less|vim?|nano|code --wait|cache|store|)",
    re.DOTALL,
)


class GitWords(NamedTuple):
    rest: Sequence[Word]  # the subcommand, and the words behind it
    moved: bool  # to a directory that is not known
    is_hidden: bool  # a setting may run something
    lines: tuple[str, ...]  # what such settings have a shell run


def of_git(words: Sequence[Word]) -> GitWords:
    settings: list[str] = []
    at, moved, is_hidden = 1, False, False
    while at < len(words) and words[at].text.startswith("-"):
        name, _, value = words[at].text.partition("=")
        moved |= name in _MOVES
        following = words[at + 1].text if at + 1 < len(words) else ""
        is_hidden |= any(word.pattern or word.splits for word in words[at : at + 2])
        takes_next = name == "-c" or (name in _WITH_VALUE and not value)
        if name == "-c":
            settings.append(following)
        elif not _KNOWN.fullmatch(name):
            is_hidden = True
        at += 2 if takes_next else 1
    rest = words[at:]
    settings += _set_by(rest)
    running = [each for each in settings if not _is_harmless(each)]
    lines = (each.partition("=")[2].removeprefix("!").strip() for each in running)
    told = tuple(line for line in lines if line and UNTOLD not in line)
    called = [word.text for word in rest[1:]]
    if rest and UNTOLD not in "".join(called):  # an alias gets the words behind it
        told += tuple(" ".join([line, *called]) for line in told)
    more = tuple(f"git {line}" for line in told)  # or stands for a subcommand
    return GitWords(rest, moved, is_hidden or bool(running), told + more)


def _set_by(rest: Sequence[Word]) -> Iterator[str]:
    """Return the settings that the words of a subcommand make."""
    name = rest[0].text if rest else ""
    texts = [word.text for word in rest[1:]]
    if name == "clone":
        for text, following in pairwise([*texts, ""]):
            if text.startswith("--co"):
                yield text.partition("=")[2] or following
            elif re.match("-[a-zA-Z0-9]*c", text):
                yield text.partition("c")[2] or following
    elif name == "config":
        if any(text.startswith("--re") for text in texts):
            yield "section"
        operands = [text for text in texts if not text.startswith("-") or "=" in text]
        for key, value in pairwise(operands):
            if "." in key or UNTOLD in key:
                yield f"{key}={value}"


def _is_harmless(setting: str) -> bool:
    key, equals, value = setting.partition("=")
    is_true = f"{key.casefold()}{equals or '='}{value or ('' if equals else 'true')}"
    return UNTOLD not in key and _HARMLESS.fullmatch(is_true) is not None
