"""A rule that would change what was decided of a recorded request, as one line of a policy.

It is about that command, its subcommand or, where a rule of the policy's own decided or the command
alone says too little, those arguments; about signals to processes of that name; about
that destination. A note says where
it allows more than that. In a policy that extends the recorded one it comes first, so it decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from sigwrap.escape import printable
from sigwrap.events import Event, Payload, text
from sigwrap.policy.judge.engine import (
    CompiledCommandRule,
    Engine,
    Facts,
    is_system_file,
    matching,
)
from sigwrap.policy.judge.layers import in_the_way
from sigwrap.policy.judge.match import (
    MAX_PATTERN_CHARACTERS,
    BadPattern,
    Glob,
    Regex,
    check_regex,
    check_regexes,
    to_bytes,
)
from sigwrap.policy.judge.network import Endpoint
from sigwrap.policy.judge.path_shadow import PATH_SHADOW_RULE, found_at, goes_by_its_own_name
from sigwrap.policy.judge.request import (
    DEFAULT_RULE,
    Action,
    CommandRequest,
    Program,
    SignalRequest,
    TargetType,
    most_specific,
)
from sigwrap.policy.judge.rules import Limits
from sigwrap.policy.judge.signals import ALL, signal_name
from sigwrap.policy.judge.subcommand import (
    has_subcommands,
    name_for_subcommands,
    names_of,
    readings,
)
from sigwrap.policy.tools import connections
from sigwrap.policy.tools.by_name import runs_anything, says_too_little
from sigwrap.policy.tools.destructive import why_no_rule
from sigwrap.policy.tools.draft import (
    COMMAND_RULES,
    NETWORK_RULES,
    SIGNAL_RULES,
    Draft,
    NoRule,
    for_both,
    rule_line,
    rule_names,
    unused_name,
)
from sigwrap.policy.tools.generate import Request, requests_from_events
from sigwrap.policy.tools.literal import (
    glob_of,
    is_plain,
    regex_of,
    stands_as_it_is,
    yaml_list,
    yaml_word,
)
from sigwrap.policy.tools.wide import note_on
from sigwrap.tuples import NamedTuple

_MASK = "***"  # what was a secret (mediate/masking.py)
_SECRET = "[A-Za-z0-9._~+/=:@%,-]+"  # nothing that a shell would take for more than a word
_LONGEST_EXACT = 200
_MOST_PROGRAMS = 8
_MOST_JUDGED = 100
_ONE_PROCESS = (TargetType.SELF, TargetType.ROOT)  # there is no other of the kind
_LENIENT = (Action.ALLOW.value, Action.AUDIT.value)
_BUILT_IN = "builtin:"
_LIMITS = "limits."
_OF_SIGWRAP = (_BUILT_IN, _LIMITS, "trust.")

_WHY_NOT = {
    "traced": "the caller is traced, so its tracer could change what runs",
    "unreadable": "the program cannot be read",
    "stalled": "reading the program would block sigwrap",
    "killswitch": "the kill switch is on",
    "sigwrap": "processes in a session cannot signal or trace sigwrap",
    "everybody": "it would reach every process",
    "unresolved": "its target cannot be determined",
    "ptrace": "the traced process could not be verified",
    "group": "the process group is not of this session",
    "terminal": "the terminal is not of this session",
    "network": "no rule can match it",
}


class Suggestion(NamedTuple):
    section: str  # of the policy, for the line
    name: str
    line: str  # of YAML, fit for a terminal; empty where no rule can change it
    why_not: str  # empty where there is a line
    for_all: bool = True  # that it was asked for; of several requests, one rule may fit only some


class Suggester:
    """`engine`, of the recorded policy, knows which program and which argument it was about;
    without it a rule is about all of them. No two of its rules have the same name, nor has one the
    name of a rule of that policy."""

    def __init__(self, engine: Engine | None = None) -> None:
        self._engine = engine
        self._taken = rule_names(engine.policy) if engine is not None else set[str]()
        self._names: dict[Draft, str] = {}

    def rule_for(
        self, events: Iterable[Event], decision: str = "allow", *, are_some: bool = False
    ) -> Suggestion | None:
        """By which `decision` comes out for the first of them, and for the others as far as one
        rule can; None: that is no decision. `are_some`: of more, which have other
        arguments."""
        draft, for_all = None, True
        drafted_for = list[Request]()
        for event, request in requests_from_events(events):
            try:
                found = drafted(event, request, decision, self._engine)
            except NoRule as why:
                if draft is None:
                    return Suggestion(section_of(request), "", "", str(why))
                for_all = False
                continue
            both = found if draft is None else for_both(draft, found)
            for_all = for_all and both is not None
            if both is not None:
                draft = both
                drafted_for.append(request)
        if draft is None:
            return None
        for_all = for_all and not (are_some and draft.patterns)
        return self.suggestion(draft, drafted_for)._replace(for_all=for_all)

    def suggestion(self, draft: Draft, requests: Iterable[Request]) -> Suggestion:
        """`requests`: what it was drafted for."""
        name = self._name(draft)
        line = rule_line(with_note(draft, requests, self._engine), name)
        return Suggestion(draft.section, name, line, "")

    def _name(self, draft: Draft) -> str:
        known = self._names.get(draft)
        if known is None:
            known = self._names[draft] = unused_name(draft, self._taken)
        return known


def drafted(
    event: Event,
    request: Request,
    decision: str,
    engine: Engine | None = None,
    *,
    exact: bool = False,
) -> Draft:
    """NoRule says why there can be none. `exact`: about these very arguments, whatever decided."""
    if decision in _LENIENT and (why := why_no_rule(event)):
        raise NoRule(why)
    match request:
        case SignalRequest():
            draft = _about_signal(event.payload, request, decision)
        case Endpoint():
            _complain_of_rule(text(event.payload.get("rule_name")))
            draft = connections.draft_of(request, decision)
        case CommandRequest():
            draft = _about_exec(event.payload, request, decision, engine, exact=exact)
    rule = text(event.payload.get("rule_name"))
    overrides = _in_the_way(request, Action(decision), rule, engine)
    return draft._replace(overrides=tuple(dict.fromkeys(overrides)))


def _in_the_way(
    request: Request, action: Action, rule: str, engine: Engine | None
) -> Iterable[str]:
    if engine is None:
        is_laxer = action is not Action.DENY and rule and not rule.startswith(_OF_SIGWRAP)
        return (rule,) if is_laxer else ()
    match request:
        case SignalRequest():
            rules = [each for each in engine.signal_rules if request.signal in each.rule.signals]
            return in_the_way(rules, lambda rule: rule.matches(request), action)
        case Endpoint():
            return engine.network.in_the_way(request, action)
        case CommandRequest():
            facts = [Facts(each, request, engine.home) for each in request.programs]
            found = [in_the_way(engine.command_rules, matching(each), action) for each in facts]
            return chain.from_iterable(found)


def section_of(request: Request) -> str:
    match request:
        case CommandRequest():
            return COMMAND_RULES
        case SignalRequest():
            return SIGNAL_RULES
        case Endpoint():
            return NETWORK_RULES


def with_note(draft: Draft, requests: Iterable[Request], engine: Engine | None) -> Draft:
    """That it allows more than these, if it does. What only denies or asks needs none."""
    if draft.section != COMMAND_RULES or draft.decision not in _LENIENT:
        return draft
    commands = (each for each in requests if isinstance(each, CommandRequest))
    alone = rule_line(draft._replace(overrides=()), "alone")
    return draft._replace(note=note_on(alone, commands, engine))


def _about_exec(
    payload: Payload,
    request: CommandRequest,
    decision: str,
    engine: Engine | None,
    *,
    exact: bool,
) -> Draft:
    lenient = decision in _LENIENT
    rule = text(payload.get("rule_name"))
    if lenient:
        _complain_of_allowance(payload, request, rule)
    subjects = _subjects(request, decision, engine) if lenient else list(request.programs[:1])
    if len(subjects) > _MOST_PROGRAMS:
        raise NoRule("it runs more programs than one rule should cover")
    commands = list(_commands(subjects, request.cwd if lenient else None))
    exactly = _Exactly(is_masked=payload.get("masked") is True)
    words, keys, patterns = _about_programs(
        subjects, request, rule, engine, exactly, exact=exact, lenient=lenient
    )
    keys = [("commands", yaml_list(commands)), *keys, *_as_before(subjects, request, engine)]
    return Draft(COMMAND_RULES, tuple(words), tuple(keys), tuple(patterns), decision)


def _complain_of_allowance(payload: Payload, request: CommandRequest, rule: str) -> None:
    _complain_of_rule(rule)
    if request.truncated:
        raise NoRule("it has too many arguments to judge")
    if payload.get("elsewhere"):
        raise NoRule(
            "its file is on a mount outside sigwrap's namespace, so its name proves nothing"
        )
    if not all(each.path_is_told for each in request.programs):
        raise NoRule("the path of its file is too long to show")


def _complain_of_rule(rule: str) -> None:
    if rule.startswith(_BUILT_IN) and rule != DEFAULT_RULE:
        built_in = rule.removeprefix(_BUILT_IN)
        raise NoRule(f"built in: {_WHY_NOT.get(built_in, 'no rule overrides it')}")
    if rule.startswith(_LIMITS):
        limit = rule.removeprefix(_LIMITS)
        key = limit if limit in Limits.keys().values() else "..."
        raise NoRule(f"a limit: raise limits.{key}")


def _subjects(request: CommandRequest, decision: str, engine: Engine | None) -> list[Program]:
    """Those that the rule has to be about: the strictest answer holds."""
    if engine is None:
        return list(request.programs)
    if len(request.programs) > _MOST_JUDGED:
        raise NoRule("it runs too many programs to judge")
    found = []
    for program in request.programs:
        decided = engine.decide_program(program, request)
        by_default = program.counts_by_name and decided.rule == DEFAULT_RULE
        is_held_against = program.shadows and not engine.is_chosen(program, request)
        if is_held_against or (decided.action.value != decision and not by_default):
            found.append(program)
    return found or list(request.programs[:1])


def _about_programs(
    subjects: Sequence[Program],
    request: CommandRequest,
    rule: str,
    engine: Engine | None,
    exactly: _Exactly,
    *,
    exact: bool,
    lenient: bool,
) -> tuple[list[str], list[tuple[str, str]], list[str]]:
    """Words for the rule's name, keys beside `commands`, and patterns for the arguments."""
    first = subjects[0]
    called = _called(first)
    # A link and its file, a script's own name and its package's: one command, and its words.
    is_one = all(each.argv == first.argv and _called(each) == called for each in subjects)
    if not is_one:
        return [_told(first)], _first_words(subjects), exactly.lines_of(subjects)
    decided_by = _decided_by(first, request, engine)
    subcommands = _subcommands(called, first, decided_by)
    if any(map(exactly.is_secret, subcommands)):  # a rule is held against what was passed
        subcommands = []
    words, keys = [_told(first), *subcommands[:1]], list[tuple[str, str]]()
    patterns = list[str]()
    is_too_little = lenient and not subcommands and says_too_little(called, first, request, engine)
    if exact or is_too_little or _is_to_be_exact(called, rule, subcommands, decided_by):
        telling = _telling_argument(first, decided_by) if subcommands and not exact else ""
        words.append(telling)
        only = " ".join(first.argv[1:]) if len(first.argv) <= 2 else None
        if telling:
            patterns = exactly.texts([telling])
        elif subcommands or only is None or not _can_be_named(only):
            patterns = exactly.lines_of([first]) if len(first.argv) > 1 else []
        else:
            subcommands = [only]  # narrower than a pattern, which any argument may fit
            if lenient and not only:  # options alone are no subcommand either
                patterns = exactly.texts([only])
    if subcommands:
        keys.append(("subcommands", yaml_list(subcommands)))
    return words, keys, patterns


def _first_words(subjects: Sequence[Program]) -> list[tuple[str, str]]:
    """Where one has no arguments, any empty one among others' would fit its pattern."""
    if all(len(each.argv) > 1 for each in subjects):
        return []
    found = [
        next(iter(reading), "")
        for each in subjects
        for reading in readings(_called(each), each.argv)
    ]
    if not all(map(_can_be_named, found)):
        return []
    return [("subcommands", yaml_list(dict.fromkeys(found)))]


def _decided_by(
    program: Program, request: CommandRequest, engine: Engine | None
) -> CompiledCommandRule | None:
    if engine is None:
        return None
    decision = engine.decide_program(program, request)
    return next((rule for rule in engine.command_rules if rule.decision is decision), None)


def _is_to_be_exact(
    called: str, rule: str, subcommands: Sequence[str], decided_by: CompiledCommandRule | None
) -> bool:
    """Where no rule decided, or one for every command, the command as such is meant; and where one
    did that is about all arguments of a subcommand, that subcommand."""
    if runs_anything(called):
        return True
    if has_subcommands(called) and not subcommands:
        return True
    if rule in ("", DEFAULT_RULE):
        return False
    if decided_by is None:
        return rule != PATH_SHADOW_RULE
    about = decided_by.rule
    if about.judges_words:
        return True
    return not subcommands and "*" not in about.commands


def _as_before(
    subjects: Sequence[Program], request: CommandRequest, engine: Engine | None
) -> Iterator[tuple[str, str]]:
    """What asks or denies where variables load code into these very programs still does, unless
    that is what was decided."""
    if engine is None:
        return
    guarded = False
    for program in subjects:
        decided_by = _decided_by(program, request, engine)
        if decided_by is not None and decided_by.rule.loads_code:
            return
        guarded = guarded or _is_guarded(program, request, engine)
    if guarded:
        yield "loads_code", "false"


def _is_guarded(program: Program, request: CommandRequest, engine: Engine) -> bool:
    facts = Facts(program, request, engine.home)
    rules = (rule for rule in engine.command_rules if rule.rule.loads_code)
    return any(rule.names(facts) for rule in rules)


def _subcommands(
    called: str,
    program: Program,
    decided_by: CompiledCommandRule | None,
) -> list[str]:
    """A name for each way to read the arguments; nothing where a rule can't name them all."""
    if not has_subcommands(called):
        return []
    wanted = frozenset(decided_by.rule.subcommands if decided_by is not None else ())
    names = []
    for reading in readings(called, program.argv):
        known = wanted & names_of(called, reading)
        names.append(max(known, key=len) if known else next(iter(reading), ""))
    if all(_can_be_named(each) for each in names):
        return list(dict.fromkeys(names))
    return []


def _can_be_named(subcommand: str) -> bool:
    is_option = subcommand.startswith("-") and subcommand != "-"
    return not is_option and is_plain(subcommand) and len(subcommand) <= _LONGEST_EXACT


def _telling_argument(program: Program, decided_by: CompiledCommandRule | None) -> str:
    """The one that the rule found; empty where it found several together."""
    if decided_by is None or not decided_by.rule.args_patterns:
        return ""
    regex = Regex(decided_by.rule.args_patterns)
    for argument in program.argv[1:]:
        if argument and regex.found_in(to_bytes(argument)):
            return argument
    return ""


class _Exactly(NamedTuple):
    """Patterns for whole texts. A process chooses them, so none of them may be for others."""

    is_masked: bool  # else `***` is what was passed

    def is_secret(self, word: str) -> bool:
        return self.is_masked and _MASK in word

    def lines_of(self, programs: Iterable[Program]) -> list[str]:
        return self.texts(" ".join(each.argv[1:]) for each in programs)

    def texts(self, found: Iterable[str]) -> list[str]:
        """NoRule where one rule can't hold all of it: its beginning has any number of ends."""
        patterns = list(dict.fromkeys(map(self._pattern, found)))
        try:
            for each in patterns:
                check_regex(each)
            check_regexes(patterns)
        except BadPattern as error:
            raise NoRule("its arguments are too long for one rule") from error
        return patterns

    def _pattern(self, found: str) -> str:
        parts = found.split(_MASK) if self.is_masked else [found]
        return f"^{_SECRET.join(map(regex_of, parts))}$"


def _word(program: Program) -> str:
    """The name that an allowance is by: a link's own only where only root can change it."""
    name = program.name
    if not program.counts_by_name and not is_system_file(program):
        name = _basename(program)
    if not name or "/" in name:
        raise NoRule("its name is not a valid file name")
    return _as_glob(name)


def _commands(subjects: Sequence[Program], folder: str | None) -> dict[str, None]:
    """`folder`: where an allowance starts from. What it is about has to be chosen by its very path
    where it was found along PATH before the system's of that name."""
    chosen = [each for each in subjects if each.shadows and folder is not None]
    words = dict.fromkeys(word for each in chosen for word in _choosing(each, folder or ""))
    others = (each for each in subjects if each.path not in words)
    return words | dict.fromkeys(map(_word, others))


def _choosing(program: Program, folder: str) -> tuple[str, ...]:
    """Words of a rule that choose it (CompiledCommandRule.chooses): of a link its own as well."""
    if not stands_as_it_is(program.path):
        raise NoRule(
            f"it comes before {_system_file(program)} in PATH, and a rule cannot contain its path: "
            "run it by its full path"
        )
    if goes_by_its_own_name(program):
        return (program.path,)
    for link in (found_at(program, folder), program.name):
        if stands_as_it_is(link):
            return (link, program.path)
    raise NoRule(
        f"it comes before {_system_file(program)} in PATH, by a link whose name a rule cannot "
        "contain: run it by its full path"
    )


def _system_file(program: Program) -> str:
    return printable(program.shadows[:_LONGEST_EXACT])


def _as_glob(word: str) -> str:
    found = glob_of(word)
    if len(found) > MAX_PATTERN_CHARACTERS:
        raise NoRule("its name is too long for a rule")
    return found


def _called(program: Program) -> str:
    return name_for_subcommands(_basename(program), program.name)


def _told(program: Program) -> str:
    """For the rule's name: what was called, as long as the rule is for that (_commands)."""
    is_by_name = program.counts_by_name or program.shadows or is_system_file(program)
    return program.name.rpartition("/")[2] if is_by_name else _basename(program)


def _basename(program: Program) -> str:
    return program.name if program.counts_by_name else program.path.rpartition("/")[2]


def _about_signal(payload: Payload, request: SignalRequest, decision: str) -> Draft:
    rule = text(payload.get("rule_name"))
    if TargetType.PARENT in request.target_types:
        raise NoRule(f"built in: {_WHY_NOT['sigwrap']}")
    _complain_of_rule(rule)
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
    return Draft(SIGNAL_RULES, words, tuple(keys), (), decision, note)


def _pattern_of_target(command: str) -> str:
    """As YAML; empty where there is none for that name."""
    try:
        pattern = _as_glob(command)
    except NoRule:
        return ""
    return yaml_word(pattern) if command and Glob(pattern).matches(command) else ""
