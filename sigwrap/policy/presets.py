"""How an agent is run by its name alone (`sigwrap claude …`), and what its tool calls look like.

The data is policies/presets, checked beforehand (policy/tools/presets.py). Nothing is judged by
what is shown of a tool call.
"""

from __future__ import annotations

from collections.abc import Sequence

from sigwrap.bare import re
from sigwrap.policy.shipped.presets import PRESETS as _DATA
from sigwrap.tuples import NamedTuple

COMMAND, QUOTED, PATH = "{command}", "{quoted}", "*"
_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})


class Preset(NamedTuple):
    name: str
    program: str
    policy: str
    install: str
    before: tuple[str, ...] = ()  # words before the user's own
    environment: tuple[tuple[str, str], ...] = ()  # where the user has not set them
    daemons: tuple[str, ...] = ()  # outside of a session, these would do its work
    stop: str = ""  # how such a one is stopped
    without_sandbox: tuple[str, ...] = ()  # each of these words leaves out its own, of mounts
    sandbox_words: tuple[str, ...] = ()  # the user's own choice starts with one of these
    tool_calls: tuple[str, ...] = ()  # what a shell gets, with the command somewhere in it

    def line(self, words: list[str], *, has_file_rules: bool = False) -> tuple[str, ...]:
        """COMMAND. `words`: the user's own. `has_file_rules`: those of the preset's policy."""
        before = [each for each in self.before if each not in words]
        if has_file_rules and not any(word.startswith(self.sandbox_words) for word in words):
            before += " ".join(self.without_sandbox[:1]).split()
        return self.program, *before, *words

    def makes_sandbox(self, words: Sequence[str]) -> bool:
        """As far as they say it: its settings are not looked at."""
        off = {each.split()[-1] for each in self.without_sandbox}
        return bool(off) and not any(each in word for word in words for each in off)

    def as_daemon(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Its words, of a daemon of this agent's, without whoever interprets it; else none."""
        for at, word in enumerate(argv[:2]):
            name = word.rpartition("/")[2].removesuffix(".js")
            for daemon in self.daemons:
                program, *words = daemon.split()
                if program == name and _are_in(tuple(words), argv[at + 1 :]):
                    return name, *argv[at + 1 :]
        return ()


PRESETS = {name: Preset(name, **each) for name, each in _DATA.items()}


def as_meant(argv: list[str]) -> list[str]:
    """A shell's words, without what an agent has put around the command that it was asked to run;
    else the same list. Only text that does nothing but that is left out: around the command all is
    known by the letter, but for paths."""
    if len(argv) < 3 or argv[0].rpartition("/")[2] not in _SHELLS:
        return argv
    for pattern, is_quoted in _tool_calls():
        found = pattern.fullmatch(argv[-1])
        if found is None:
            continue
        inner = found.group(1)
        if is_quoted and (inner := _one_word(inner)) is None:
            continue
        return [*argv[:-1], inner]
    return argv


def _are_in(words: tuple[str, ...], argv: tuple[str, ...]) -> bool:
    """One behind the other."""
    return any(argv[at : at + len(words)] == words for at in range(len(argv)))


def _one_word(text: str) -> str | None:
    """What a shell would make of it, where that is one word, in quotes."""
    import shlex

    try:
        words = shlex.split(text)
    except ValueError:
        return None
    is_quoted = text[:1] == "'" and text[-1:] == "'"
    return words[0] if is_quoted and len(words) == 1 else None


def _tool_calls() -> list[tuple[re.Pattern[str], bool]]:
    if not _compiled:  # where a shell is first met
        for preset in PRESETS.values():
            _compiled.extend(map(_pattern, preset.tool_calls))
    return _compiled


def _pattern(text: str) -> tuple[re.Pattern[str], bool]:
    is_quoted = QUOTED in text
    parts = text.split(QUOTED if is_quoted else COMMAND)
    around = (r"[\w@%+=:,./~^-]*".join(map(re.escape, part.split(PATH))) for part in parts)
    return re.compile("(?s)" + "(.*)".join(around)), is_quoted


_compiled: list[tuple[re.Pattern[str], bool]] = []
