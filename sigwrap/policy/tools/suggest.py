"""Propose rules that change the decision about a recorded request.

A command rule names the program and its exact arguments. A signal rule names the signal and the
target, a network rule the destination. In a policy that extends the recorded one, the rules come
first and decide. The engine checks that they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from sigwrap.bare import NamedTuple
from sigwrap.events import DENIED_TYPES, Event, Payload, text, texts
from sigwrap.policy.judge.engine import Engine, Facts, matching
from sigwrap.policy.judge.globs import MAX_PATTERN_CHARACTERS, Glob
from sigwrap.policy.judge.layers import in_the_way
from sigwrap.policy.judge.network import Endpoint
from sigwrap.policy.judge.request import (
    DEFAULT_RULE,
    Action,
    CommandRequest,
    Program,
    SignalRequest,
    TargetType,
    is_below_policies,
    most_specific,
)
from sigwrap.policy.judge.rules import Limits
from sigwrap.policy.judge.signals import ALL, signal_name
from sigwrap.policy.judge.system_folders import found_at, goes_by_its_own_name
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.fill import BUILT_IN
from sigwrap.policy.language.parse import parse_policy
from sigwrap.policy.tools import connections
from sigwrap.policy.tools.again import Request, decide, request_of
from sigwrap.policy.tools.draft import (
    COMMAND_RULES,
    NETWORK_RULES,
    SECTIONS,
    SIGNAL_RULES,
    Draft,
    NoRule,
    allowed_name,
    exact_command,
    rule_line,
    unused_name,
)
from sigwrap.policy.tools.literal import (
    glob_of,
    stands_as_it_is,
    yaml_list,
    yaml_word,
)
from sigwrap.text import printable

_LONGEST_PATH_SHOWN = 200
_MOST_PROGRAMS = 20  # of one exec
_MOST_CHECKED = 1_000  # an engine takes some milliseconds
_ONE_PROCESS = (TargetType.SELF, TargetType.ROOT)  # there is no other process of this type
_LIMITS = "limits."
_ELSEWHERE = "its file is on a mount outside sigwrap's namespace, so its name proves nothing"

# Denied actions that no proposed rule allows: they destroy a system, or give away the credentials
# of the machine. Rules of the shipped policies are known by the start of their names.
_DESTRUCTIVE_RULES = (
    *("destroy-", "overwrite-system", "write-to-device", "format-disk"),
    "cloud-credentials",
)
_DELETES = frozenset({"rm", "rmdir", "shred", "wipe", "srm"})
_SYSTEM = frozenset({"/", "/*", "/bin", "/boot", "/etc", "/home", "/lib", "/root", "/usr", "/var"})
_CREDENTIALS = frozenset({"169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254"})


_SECTIONS = {
    CommandRequest: COMMAND_RULES,
    SignalRequest: SIGNAL_RULES,
    Endpoint: NETWORK_RULES,
}

Drafts = tuple[Draft, ...]


class Suggestion(NamedTuple):
    """Proposed rules of one section."""

    section: str
    name: str  # of the first rule
    line: str  # of YAML, one for each rule; empty if no rule can change the decision
    why_not: str  # empty if there is a line
    for_all: bool = True  # of the given requests


class Suggester:
    """Propose rules, by the engine of the recorded policy, or none if there is no such engine.

    The names of the rules are unique, also among those of the recorded policy.
    """

    def __init__(self, engine: Engine | None) -> None:
        self._engine = engine
        self._names: dict[Draft, str] = {}
        self._checked: dict[Drafts, str] = {}  # why the engine would not decide so, or ""
        self._taken: set[str] = set()
        if engine is not None:
            rules = (getattr(engine.policy, section) for section in SECTIONS)
            self._taken = {rule.name for rule in chain.from_iterable(rules)}

    def rule_for(
        self, events: Iterable[Event], decision: str = "allow", *, are_some: bool = False
    ) -> Suggestion | None:
        """Propose rules for events; None if they are no decisions.

        `are_some` says that there were more events, with other arguments.
        """
        drafts = dict[Draft, None]()
        section = why_not = ""
        for event in events:
            request = request_of(event)
            if request is None:
                continue
            section = _SECTIONS[type(request)]
            found = self.drafts(event, decision)
            if isinstance(found, str):
                why_not = why_not or found
            else:
                drafts.update(dict.fromkeys(found))
        if not drafts:
            return Suggestion(section, "", "", why_not) if why_not else None
        for_all = not (are_some or why_not)
        return self.suggestion(tuple(drafts))._replace(for_all=for_all)

    def drafts(self, event: Event, decision: str = "allow") -> Drafts | str:
        """Return rules that make `decision` the answer to a request, or why there are none."""
        if self._engine is None:
            return "the recorded policy cannot be loaded"
        request = request_of(event)
        if request is None:
            return "it is no decision"
        try:
            found = _drafted(event, request, decision, self._engine)
        except NoRule as why:
            return str(why)
        if found not in self._checked:
            if len(self._checked) >= _MOST_CHECKED:
                return "too many different actions"
            self._checked[found] = _still_decides(request, decision, self._engine, found)
        return self._checked[found] or found

    def suggestion(self, drafts: Drafts) -> Suggestion:
        lines = "\n".join(self.line(each) for each in drafts)
        return Suggestion(drafts[0].section, self._names[drafts[0]], lines, "")

    def line(self, draft: Draft) -> str:
        if draft not in self._names:
            self._names[draft] = unused_name(draft.words, self._taken)
        return rule_line(draft, self._names[draft])


def _drafted(event: Event, request: Request, decision: str, engine: Engine) -> Drafts:
    action = Action(decision)
    if action is not Action.DENY:
        _refuse_destructive(event)
        _refuse_built_in(text(event.payload.get("rule_name")))
    match request:
        case SignalRequest():
            about = [each for each in engine.signal_rules if request.signal in each.rule.signals]
            stricter = in_the_way(about, lambda rule: rule.matches(request), action)
            found = {_about_signal(event.payload, request): stricter}
        case Endpoint():
            found = {connections.draft_of(request): engine.network.in_the_way(request, action)}
        case CommandRequest():
            found = _about_exec(event.payload, request, action, engine)
    return tuple(
        draft._replace(
            words=(decision, *draft.words),
            keys=(*draft.keys, ("decision", decision)),
            overrides=tuple(dict.fromkeys(overrides)),
        )
        for draft, overrides in found.items()
    )


def _still_decides(request: Request, decision: str, engine: Engine, drafts: Drafts) -> str:
    """Return what a policy that extends the engine's by the rules decides, or "" if `decision`."""
    section, policy = drafts[0].section, engine.policy
    # The rules are loaded without the base, so `overrides` is added afterwards.
    lines = (rule_line(each._replace(overrides=()), f"r{n}") for n, each in enumerate(drafts))
    own = parse_policy(
        Source("proposed", "\n".join(["version: 1", "name: proposed", f"{section}:", *lines])),
        variables=dict.fromkeys(BUILT_IN, ""),
        find_base=lambda _name, _source: None,
    )
    rules = getattr(policy, section)
    layer = 1 + max((each.layer for each in rules), default=0)
    first = [
        each._replace(layer=layer, overrides=draft.overrides)
        for each, draft in zip(getattr(own, section), drafts, strict=True)
    ]
    together: dict[str, Any] = {section: (*first, *rules)}
    found = decide(Engine(policy._replace(**together)), request)
    if found.action.value == decision:
        return ""
    return f"the policy would still decide {found.action.value}, by {found.rule}"


def _refuse_destructive(event: Event) -> None:
    if event.type not in DENIED_TYPES:
        return
    payload = event.payload
    if text(payload.get("address")) in _CREDENTIALS:
        raise NoRule("this address hands out the machine's credentials; write the rule yourself")
    argv = texts(payload.get("argv"))
    is_delete = bool(argv) and argv[0].rpartition("/")[2] in _DELETES
    is_destructive = text(payload.get("rule_name")).startswith(_DESTRUCTIVE_RULES)
    if is_destructive or (is_delete and _SYSTEM & set(argv)):
        raise NoRule("it can destroy a system or home directory; write the rule yourself")


def _refuse_built_in(rule: str) -> None:
    if is_below_policies(rule):
        raise NoRule(f"{rule}: no rule overrides it")
    if rule.startswith(_LIMITS):
        limit = rule.removeprefix(_LIMITS)
        key = limit if limit in Limits.keys().values() else "..."
        raise NoRule(f"a limit: raise limits.{key}")


def _about_exec(
    payload: Payload, request: CommandRequest, action: Action, engine: Engine
) -> dict[Draft, list[str]]:
    """Return rules, each with the stricter rules of the policy that it overrides."""
    lenient = action is not Action.DENY
    is_told = all(each.path_is_told for each in request.programs)
    for why, is_so in (
        (_ELSEWHERE, lenient and payload.get("elsewhere")),
        ("the path of its file is too long", lenient and not is_told),
        ("it has too many arguments to judge", request.truncated),
        ("the log masks a secret in its arguments", payload.get("masked") is True),
        ("its arguments are cut in the log", "cut" in payload),
        ("it runs too many programs", len(request.programs) > _MOST_PROGRAMS),
    ):
        if is_so:
            raise NoRule(f"{why}; write the rule yourself")
    programs = _subjects(request, action, engine) if lenient else list(request.programs[:1])
    loads_code = tuple(_loads_code(programs, request, engine))
    found: dict[Draft, list[str]] = {}
    for program in programs:
        is_chosen = lenient and program.shadows
        commands = _choosing(program, request.cwd) if is_chosen else (_command_of(program),)
        keys = exact_command(commands, program.argv[1:]) + loads_code
        called = program.name if program.shadows else allowed_name(program)
        draft = Draft(COMMAND_RULES, (called, *program.argv[1:]), keys)
        matches = matching(Facts(program, request, engine.home))
        found.setdefault(draft, []).extend(in_the_way(engine.command_rules, matches, action))
    return found


def _subjects(request: CommandRequest, action: Action, engine: Engine) -> list[Program]:
    """Return the programs that need a rule: the strictest decision applies to all of them."""
    found = []
    for program in request.programs:
        decided = engine.decide_program(program, request)
        by_default = program.counts_by_name and decided.rule == DEFAULT_RULE
        is_held_against = program.shadows and not engine.is_chosen(program, request)
        if is_held_against or (decided.action is not action and not by_default):
            found.append(program)
    return found or list(request.programs[:1])


def _loads_code(
    programs: Sequence[Program], request: CommandRequest, engine: Engine
) -> Iterator[tuple[str, str]]:
    """Keep the policy's protection of these programs from variables that load code."""
    guards = [each for each in engine.command_rules if each.rule.loads_code]
    decisions = [engine.decide_program(each, request) for each in programs]
    if any(guard.decision is decision for guard in guards for decision in decisions):
        return  # the code that is loaded is what was denied
    facts = [Facts(each, request, engine.home) for each in programs]
    if any(guard.names(each) for guard in guards for each in facts):
        yield "loads_code", "false"


def _command_of(program: Program) -> str:
    name = allowed_name(program)
    if not name or "/" in name:
        raise NoRule("its name is not a valid file name")
    return _as_glob(name)


def _choosing(program: Program, folder: str) -> tuple[str, ...]:
    """Return the paths that choose a program which shadows another: with a link, both paths."""
    links = [each for each in (found_at(program, folder), program.name) if stands_as_it_is(each)]
    if stands_as_it_is(program.path) and goes_by_its_own_name(program):
        return (program.path,)
    if stands_as_it_is(program.path) and links:
        return (links[0], program.path)
    shadows = printable(program.shadows[:_LONGEST_PATH_SHOWN])
    raise NoRule(
        f"it comes before {shadows} in PATH, and a rule cannot contain its path: "
        "run it by its full path"
    )


def _as_glob(word: str) -> str:
    found = glob_of(word)
    if len(found) > MAX_PATTERN_CHARACTERS:
        raise NoRule("its name is too long for a rule")
    return found


def _about_signal(payload: Payload, request: SignalRequest) -> Draft:
    if request.signal not in ALL:
        raise NoRule("no rule can name a signal with this number")
    if not request.target_types:
        raise NoRule("the log has no target for it")
    name, kind = signal_name(request.signal), most_specific(request.target_types)
    pattern = "" if kind in _ONE_PROCESS else _pattern_of_target(request.target_command)
    target = f"{{type: {kind.value}, pattern: {pattern}}}" if pattern else kind.value
    keys = [("signals", yaml_list([name])), ("target", target)]
    if isinstance(handled := payload.get("target_handles"), bool):
        keys.append(("handled", str(handled).lower()))
    words = (name.lower(), "to", request.target_command if pattern else kind.value)
    note = "" if pattern or kind in _ONE_PROCESS else f"wide: any process of type {kind.value}"
    return Draft(SIGNAL_RULES, words, tuple(keys), note)


def _pattern_of_target(command: str) -> str:
    """Return the pattern of a process name as YAML; empty if no pattern matches it."""
    try:
        pattern = _as_glob(command)
    except NoRule:
        return ""
    return yaml_word(pattern) if command and Glob(pattern).matches(command) else ""
