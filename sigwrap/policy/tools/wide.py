"""What a rule lets through beside what it was made for, in the words of a note.

Nothing is guessed from how the rule looks: neighbours of what was recorded are made up, and both
policies are asked, the recorded one and the rule alone. What the recorded one would have let
through as well is no news.

A script is two programs, itself and its interpreter: what the rule lets through only of one of
them, the note says of that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sigwrap.escape import printable, shortened
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import DEFAULT_RULE, Action, CommandRequest, Program
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.parse import parse_policy
from sigwrap.tuples import NamedTuple

ANY_ARGUMENTS = "wide: any arguments"
FURTHER_ARGUMENTS = "also matches with more arguments"
THAT_READ_SO = "also matches similar arguments"

_LENIENT = (Action.ALLOW, Action.AUDIT)
_MASK = "***"
_MOST_ARGUMENTS = 64
_MOST_PLACES = 8
_NAME_SHOWN = 40
_WORD, _OPTION = "made-up", "--made-up"

Arguments = tuple[str, ...]


def note_on(line: str, requests: Iterable[CommandRequest], engine: Engine | None) -> str:
    """On a command rule as a line; empty where it lets through only what was recorded."""
    rule = _Rule(Engine(_alone(line, engine)), engine)
    programs = [(each, request) for request in requests for each in request.programs]
    recorded = {each.argv for each, _ in programs}
    for note, neighbours in _NEIGHBOURS.items():
        for_one = ""
        for program, request in programs:
            for arguments in neighbours(program.argv[1 : _MOST_ARGUMENTS + 1]):
                other = program._replace(argv=(*program.argv[:1], *arguments))
                if other.argv in recorded or not rule.is_news(other, request):
                    continue
                if rule.goes_on(program, other, request):
                    return note
                for_one = for_one or program.name
        if for_one:
            return f"{note}, for {shortened(printable(for_one), _NAME_SHOWN)} itself"
    return ""


class _Rule(NamedTuple):
    alone: Engine
    recorded: Engine | None

    def is_news(self, program: Program, request: CommandRequest) -> bool:
        return self._lets_through(program, request) and not self._was_let_through(program, request)

    def goes_on(self, program: Program, other: Program, request: CommandRequest) -> bool:
        """The whole of it, where that program is the other one: what ends with its arguments, as
        those of an interpreter do with its script's, ends with the other's."""
        before, after = program.argv[1:], other.argv[1:]
        for each in request.programs:
            if each is program or self._is_no_matter(each, request):
                continue
            head = len(each.argv) - len(before)
            if head < 1 or each.argv[head:] != before:
                return False
            with_it = each._replace(argv=(*each.argv[:head], *after))
            if not self._lets_through(with_it, request):
                return False
        return True

    def _is_no_matter(self, program: Program, request: CommandRequest) -> bool:
        if self._was_let_through(program, request):
            return True
        if self.recorded is None or not program.counts_by_name:
            return False
        return self.recorded.decide_program(program, request).rule == DEFAULT_RULE

    def _lets_through(self, program: Program, request: CommandRequest) -> bool:
        return _is_let_through(self.alone, request._replace(programs=(program,)))

    def _was_let_through(self, program: Program, request: CommandRequest) -> bool:
        if self.recorded is None:
            return False
        return _is_let_through(self.recorded, request._replace(programs=(program,)))


def _alone(line: str, engine: Engine | None) -> Policy:
    text = f"version: 1\nname: alone\ncommand_rules:\n{line}\n"
    nothing = dict.fromkeys(("PROJECT_ROOT", "HOME", "USER", "TMPDIR"), "")
    policy = parse_policy(
        Source("suggested", text), variables=nothing, find_base=lambda _name, _source: None
    )
    return policy if engine is None else policy._replace(trust=engine.policy.trust)


def _is_let_through(engine: Engine, request: CommandRequest) -> bool:
    return engine.decide_command(request).action in _LENIENT


def _any_others(_arguments: Arguments) -> Iterator[Arguments]:
    yield from ((_WORD,), (_OPTION,), (_OPTION, _WORD), (_WORD, _OPTION))


def _further(arguments: Arguments) -> Iterator[Arguments]:
    for place in _places(arguments):
        for more in ((_WORD,), (_OPTION,), (_OPTION, _WORD)):
            yield (*arguments[:place], *more, *arguments[place:])
    for place in range(min(len(arguments), _MOST_PLACES)):
        yield (*arguments[:place], _WORD, *arguments[place + 1 :])


def _places(arguments: Arguments) -> Sequence[int]:
    return (*range(min(len(arguments), _MOST_PLACES)), len(arguments))


def _read_so(arguments: Arguments) -> Iterator[Arguments]:
    line = " ".join(arguments)
    for told in dict.fromkeys((line, *arguments[:_MOST_PLACES])):
        yield (told,)
        for more in ((_WORD,), (_OPTION,), ("--", _WORD), (*arguments, _WORD), arguments):
            yield (*more, told)
            yield (told, *more)
            yield (*more, _OPTION, told)
    yield tuple(line.split(" "))
    yield from (arguments[:place] for place in _places(arguments))
    yield tuple(each.replace(_MASK, _WORD) for each in arguments)


_NEIGHBOURS = {
    ANY_ARGUMENTS: _any_others,
    FURTHER_ARGUMENTS: _further,
    THAT_READ_SO: _read_so,
}
