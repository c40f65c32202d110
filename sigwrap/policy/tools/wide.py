"""What a rule lets through beside what it was made for, in the words of a note.

Nothing is guessed from how the rule looks: neighbours of what was recorded are made up, and both
policies are asked, the recorded one and the rule alone. What the recorded one would have let
through as well is no news.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import Action, CommandRequest
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.parse import parse_policy

ANY_ARGUMENTS = "wide: any arguments"
FURTHER_ARGUMENTS = "also with further arguments"
THAT_READ_SO = "also for arguments that read like these"

_LENIENT = (Action.ALLOW, Action.AUDIT)
_MASK = "***"
_MOST_ARGUMENTS = 64
_MOST_PLACES = 8
_WORD, _OPTION = "made-up", "--made-up"

Arguments = tuple[str, ...]


def note_on(line: str, requests: Iterable[CommandRequest], engine: Engine | None) -> str:
    """On a command rule as a line; empty where it lets through only what was recorded."""
    alone = Engine(_alone(line, engine))
    programs = [(each, request) for request in requests for each in request.programs]
    recorded = {each.argv for each, _ in programs}
    for note, neighbours in _NEIGHBOURS.items():
        for program, request in programs:
            for arguments in neighbours(program.argv[1 : _MOST_ARGUMENTS + 1]):
                argv = (*program.argv[:1], *arguments)
                if argv not in recorded:
                    other = request._replace(programs=(program._replace(argv=argv),))
                    if _is_let_through(alone, other) and not _was_let_through(engine, other):
                        return note
    return ""


def _alone(line: str, engine: Engine | None) -> Policy:
    text = f"version: 1\nname: alone\ncommand_rules:\n{line}\n"
    nothing = dict.fromkeys(("PROJECT_ROOT", "HOME", "USER", "TMPDIR"), "")
    policy = parse_policy(
        Source("suggested", text), variables=nothing, find_base=lambda _name, _source: None
    )
    return policy if engine is None else policy._replace(trust=engine.policy.trust)


def _is_let_through(engine: Engine, request: CommandRequest) -> bool:
    return engine.decide_command(request).action in _LENIENT


def _was_let_through(engine: Engine | None, request: CommandRequest) -> bool:
    return engine is not None and _is_let_through(engine, request)


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
