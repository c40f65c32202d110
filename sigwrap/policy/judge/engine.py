"""A policy compiled once; then a request in, a decision out, in microseconds.

A request meets only the rules that could match it: for a command, those that spell out its name or
path and those with globs, worked out when such a command is first seen; for a signal, those that
name it. Decisions are made when the policy is compiled: deciding picks one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sigwrap.bare import Any
from sigwrap.policy.judge.files import FileRules
from sigwrap.policy.judge.flags import Flags, flags_of
from sigwrap.policy.judge.globs import EVERYTHING, Glob, is_glob
from sigwrap.policy.judge.layers import deciding, weakened
from sigwrap.policy.judge.match import Arguments, Paths, Regex, arguments_as_paths
from sigwrap.policy.judge.network import NetworkRules
from sigwrap.policy.judge.request import (
    DEFAULT_RULE,
    LENIENT,
    PROBE_RULE,
    PROTECTS_SIGWRAP,
    STRICTNESS,
    Action,
    CommandRequest,
    Decision,
    Program,
    SignalRequest,
    TargetType,
    known,
)
from sigwrap.policy.judge.rules import (
    CommandRule,
    Depth,
    PidRange,
    Policy,
    ProcessPattern,
    SignalRule,
    decision_of,
    default_of,
)
from sigwrap.policy.judge.signals import ALL
from sigwrap.policy.judge.subcommand import name_for_subcommands, names_of, readings
from sigwrap.policy.judge.system_folders import (
    found_at,
    goes_by_its_own_name,
    held_against,
    may_be_the_systems,
)
from sigwrap.policy.judge.tools import is_program

MAX_KEPT_CANDIDATES = 1000
OVERRIDES = "overrides"
_LEFT_TO_THE_WRAPPED = frozenset({Action.APPROVE, Action.REDIRECT})


class Engine:
    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.home = policy.home
        self.files = FileRules.of(policy)
        self.network = NetworkRules.of(policy)
        self.command_rules = tuple(
            CompiledCommandRule(each, self.weakened if each.layer else None, asks=policy.asks)
            for each in policy.command_rules
        )
        self.signal_rules = tuple(
            CompiledSignalRule(each, asks=policy.asks) for each in policy.signal_rules
        )
        self.default_command = default_of(policy, "command", policy.default_command)
        self._default_signal = default_of(policy, "signal", policy.default_signal)
        decisions = {
            self.default_command.action,
            *(rule.decision for rule in policy.command_rules),
        }
        self.lets_everything_run = (
            decisions <= LENIENT and policy.trust.path_shadow is not Action.DENY
        )
        self._literals = frozenset(word for rule in self.command_rules for word in rule.literals)
        self._candidates_by_words: dict[tuple[frozenset[str], bool], Candidates] = {}
        globs = [glob for rule in self.command_rules for glob in rule.globs]
        self._glob_prefixes = tuple({glob.prefix for glob in globs})
        self._rules_by_signal = {
            number: tuple(rule for rule in self.signal_rules if number in rule.rule.signals)
            for number in ALL
        }

    def decide_command(self, request: CommandRequest) -> Decision:
        """Judge each program by its first matching rule; return the first of the strictest."""
        programs = request.programs
        strictest = self.decide_program(programs[0], request)
        for program in programs[1:]:
            decision = self.decide_program(program, request)
            if program.counts_by_name and decision.rule == DEFAULT_RULE:
                continue
            if STRICTNESS[decision.action] > STRICTNESS[strictest.action]:
                strictest = decision
        for program in programs:
            if program.shadows and not self.is_chosen(program, request):
                reaction = self.policy.trust.path_shadow
                return held_against(strictest, program, reaction, request.cwd)
        return strictest

    def decide_exec(self, request: CommandRequest, here: int) -> Decision:
        """Decide an exec that itself runs the first `here` of the programs.

        A command that `env` or `xargs` will exec can be denied now. An approval or a redirect waits
        for that exec, so that the user is asked once and the wrapper does its own work.
        """
        decision = self.decide_command(request)
        if decision.action in _LEFT_TO_THE_WRAPPED and here < len(request.programs):
            decision = self.decide_command(request._replace(programs=request.programs[:here]))
        return decision

    def is_chosen(self, program: Program, request: CommandRequest) -> bool:
        """Return whether the deciding rule names this very file."""
        decision = self.decide_program(program, request)
        return any(
            rule.decision is decision and rule.chooses(program, request.cwd)
            for rule in self.command_rules
        )

    def decide_program(self, program: Program, request: CommandRequest) -> Decision:
        facts = Facts(program, request, self.home)
        for rule, is_sure in self._candidates(facts):
            if (is_sure or rule.glob_matches(facts)) and rule.holds(facts):
                return rule.decision
        return self.default_command

    def decide_signal(self, request: SignalRequest) -> Decision:
        decision = self._decide_signal(request)
        if TargetType.SIGWRAP in request.target_types and decision.action is not Action.DENY:
            return PROTECTS_SIGWRAP
        return decision

    def _decide_signal(self, request: SignalRequest) -> Decision:
        number = request.signal
        if number == 0:
            return PROBE
        rules = self._rules_by_signal.get(number, ())
        rule = deciding(rules, lambda each: each.matches(request))
        return self._default_signal if rule is None else rule.decision

    def weakened(self, rule: CompiledCommandRule, facts: Facts) -> CompiledCommandRule | None:
        """Return the base's rule that `rule` would weaken without overriding it."""
        return weakened(rule, [each for each, _ in self._candidates(facts)], matching(facts))

    def _candidates(self, facts: Facts) -> Candidates:
        """Return the rules that may name the program, each with whether it surely does."""
        program = facts.program
        words = (program.name, facts.basename, program.path)
        # One look at all prefixes is cheaper than trying glob by glob.
        prefixes = self._glob_prefixes
        may_be_globs = (
            program.path.startswith(prefixes)
            or program.name.startswith(prefixes)
            or facts.basename.startswith(prefixes)
            or not program.path_is_told
        )
        key = self._literals.intersection(words), may_be_globs
        candidates = self._candidates_by_words.get(key)
        if candidates is None:
            # Links can have any names, so there may be any number of pairs: don't keep them all.
            if len(self._candidates_by_words) >= MAX_KEPT_CANDIDATES:
                self._candidates_by_words.clear()
            named = [(rule, rule.surely_names(key[0])) for rule in self.command_rules]
            candidates = [each for each in named if each[1] or (may_be_globs and each[0].globs)]
            self._candidates_by_words[key] = candidates
        return candidates


class _Lazy:
    """An attribute that is found when it is first needed, and kept."""

    def __init__(self, find: Callable[[Any], Any]) -> None:
        self._find = find

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        found = instance.__dict__[self._name] = self._find(instance)
        return found


class Facts:
    """Facts of a program and its request; facts that few rules need are found when needed."""

    def __init__(self, program: Program, request: CommandRequest, home: str = "") -> None:
        self.program = program
        self.request = request
        self.home = home
        self.basename = program.basename
        self._paths: dict[str, frozenset[str]] = {}

    @_Lazy
    def arguments(self) -> Arguments:
        return Arguments(self.program.argv)

    @_Lazy
    def subcommands(self) -> tuple[frozenset[str], ...]:
        """Return the names that a rule may use, for each reading of the arguments."""
        name = name_for_subcommands(self.basename, self.program.name)
        return tuple(names_of(name, each) for each in readings(name, self.program.argv))

    @_Lazy
    def flags(self) -> Flags:
        basename, name = self.basename, self.program.name
        known = basename if is_program(basename) else name_for_subcommands(basename, name)
        return flags_of(known, self.program.argv)

    @_Lazy
    def truncated(self) -> bool:
        return self.request.truncated or bool(self.arguments.cut)

    def paths(self, condition: str) -> frozenset[str]:
        known = self._paths.get(condition)
        if known is None:
            name, argv, cwd = self.program.name, self.program.argv, self.request.cwd
            known = arguments_as_paths(condition, name, argv, cwd, self.home)
            self._paths[condition] = known
        return known

    @property
    def system_file(self) -> bool:
        return is_system_file(self.program)

    @property
    def loads_code(self) -> bool:
        return known(self.program.loads_code)


class CompiledCommandRule:
    __slots__ = (
        "_conditions",
        "_lenient",
        "_name_globs",
        "_names_everything",
        "_path_globs",
        "_patterns",
        "_subcommands",
        "_weakened",
        "decision",
        "literals",
        "rule",
    )

    def __init__(
        self, rule: CommandRule, weakened: Weakened | None = None, *, asks: bool = True
    ) -> None:
        self.rule = rule
        self._weakened = weakened
        self._lenient = rule.decision in LENIENT
        globs = [word for word in rule.commands if is_glob(word) and word != EVERYTHING]
        self.literals = frozenset(word for word in rule.commands if not is_glob(word))
        self._names_everything = EVERYTHING in rule.commands
        self._path_globs = tuple(Glob(word) for word in globs if "/" in word)
        self._name_globs = tuple(Glob(word) for word in globs if "/" not in word)
        given = [each for each in _GIVEN if rule[each[0]] != each[1]]
        self._conditions = [(key, _CONDITIONS[key]) for _, _, key in given]
        self._patterns: dict[str, Any] = {
            key: _COMPILED[key](rule[at]) for at, _, key in given if key in _COMPILED
        }
        self.decision = decision_of(rule, asks=asks)._replace(redirect_to=rule.redirect_to)

    @property
    def globs(self) -> tuple[Glob, ...]:
        return self._path_globs + self._name_globs

    def surely_names(self, words: Iterable[str]) -> bool:
        return self._names_everything or not self.literals.isdisjoint(words)

    def names(self, facts: Facts) -> bool:
        program = facts.program
        return self.surely_names((program.name, facts.basename, program.path)) or self.glob_matches(
            facts
        )

    def glob_matches(self, facts: Facts) -> bool:
        for glob in self._name_globs:
            if glob.matches(facts.program.name) or glob.matches(facts.basename):
                return True
        program = facts.program
        if not (program.path_is_told or self._lenient):  # it may be any long one
            return bool(self._path_globs)
        return any(glob.matches(program.path) for glob in self._path_globs)

    def _names_what_runs(self, facts: Facts) -> bool:
        """Return whether the rule names the file that runs, not only a link to it.

        Anyone can name a link, so only links of the system count. A program whose path is unknown
        may be such a link.
        """
        program, basename = facts.program, facts.basename
        if not program.path_is_told:
            return self._names_everything
        return (
            program.name == basename
            or self.surely_names((basename, program.path))
            or any(glob.matches(basename) for glob in self._name_globs)
            or any(glob.matches(program.path) for glob in self._path_globs)
            or facts.system_file
        )

    def chooses(self, program: Program, folder: str) -> bool:
        """Return whether the rule names this file by digest or by its exact path.

        A glob is not enough: the session may have put the file there. For a link, its name or path
        must be listed too: its file may be an interpreter, allowed as `python3` but not as `git`.
        """
        is_named = bool(self.rule.sha256) or program.path in self.literals
        return is_named and (
            goes_by_its_own_name(program)
            or program.name in self.literals
            or found_at(program, folder) in self.literals
        )

    def _is_subcommand(self, facts: Facts) -> bool:
        """Return whether a subcommand matches; a rule that allows needs it in every reading."""
        wanted = self._patterns["subcommands"]
        fits = [not names.isdisjoint(wanted) for names in facts.subcommands]
        return all(fits) if self._lenient else any(fits)

    def _has_args(self, facts: Facts) -> bool:
        """Return whether the arguments are these, or all that were read begin these."""
        args, given = self.rule.args or (), facts.program.argv[1:]
        if facts.truncated:
            return not self._lenient and args[: len(given)] == given
        return given == args

    def _is_about(self, condition: str, facts: Facts) -> bool:
        paths, meant = self._patterns[condition], facts.paths(condition)
        return bool(paths.match(meant) if self._lenient else paths.may_match(meant))

    def _is_outside(self, facts: Facts) -> bool:
        """Return whether an argument may be a path that is not inside."""
        inside = self._patterns["outside"]
        return facts.truncated or not all(inside.match((each,)) for each in facts.paths("outside"))

    def _has_digest(self, facts: Facts) -> bool:
        digest = facts.program.sha256
        return digest is not None and digest() in self.rule.sha256

    def holds(self, facts: Facts) -> bool:
        return self.failing_condition(facts) is None

    def failing_condition(self, facts: Facts) -> str | None:
        """Return the key of the first condition that does not hold."""
        if self._names_everything and facts.program.counts_by_name:
            return "commands"
        if self._lenient:
            if facts.program.elsewhere and not self._names_everything:
                return "elsewhere"
            if not self._names_what_runs(facts):
                return "commands"
        for key, holds in self._conditions:
            if not holds(self, facts):
                return key
        if self._weakened is not None and self._weakened(self, facts) is not None:
            return OVERRIDES
        return None

    def _has_other_digest(self, facts: Facts) -> bool:
        """Return whether the program has none of the pinned digests.

        An unreadable file has an empty digest, and no rule allows it. A program without a digest
        was not found, or is run by another file: `python3 -m pip` is python3's file.
        """
        program = facts.program
        if program.sha256 is None:
            return program.missing and not self._lenient
        digest = program.sha256()
        return digest not in self.rule.not_sha256 and not (self._lenient and not digest)


# Each condition of a rule, by its key; the costly ones come last.
_CONDITIONS: dict[str, Callable[[CompiledCommandRule, Facts], bool]] = {
    "depth": lambda it, facts: (it.rule.depth or Depth()).holds(facts.request.depth),
    "traced": lambda it, facts: it.rule.traced == facts.request.traced,
    "system_file": lambda it, facts: it.rule.system_file == facts.system_file,
    "subcommands": CompiledCommandRule._is_subcommand,
    "args": CompiledCommandRule._has_args,
    "flags": lambda it, facts: all(map(facts.flags.has, it.rule.flags)),
    "truncated": lambda it, facts: it.rule.truncated == facts.truncated,
    "paths": lambda it, facts: it._is_about("paths", facts),
    "sources": lambda it, facts: it._is_about("sources", facts),
    "outside": CompiledCommandRule._is_outside,
    "args_patterns": lambda it, facts: facts.arguments.match(it._patterns["args_patterns"]),
    "loads_code": lambda it, facts: it.rule.loads_code == facts.loads_code,
    "sha256": CompiledCommandRule._has_digest,
    "not_sha256": CompiledCommandRule._has_other_digest,
}
# The place of each in a rule, and what is there if the policy has no such condition.
_GIVEN = [
    (CommandRule._fields.index(key), CommandRule._field_defaults[key], key) for key in _CONDITIONS
]
_COMPILED: dict[str, Callable[[Any], Any]] = {
    "subcommands": frozenset,
    "paths": Paths,
    "sources": Paths,
    "outside": Paths.beneath,
    "args_patterns": Regex,
}


def matching(facts: Facts) -> Callable[[CompiledCommandRule], bool]:
    """Return whether a rule matches, apart from what it may not weaken."""
    return lambda rule: rule.names(facts) and rule.failing_condition(facts) in (None, OVERRIDES)


Weakened = Callable[[CompiledCommandRule, Facts], CompiledCommandRule | None]
Candidates = list[tuple[CompiledCommandRule, bool]]


class CompiledSignalRule:
    __slots__ = ("_globs", "_pid_ranges", "_types", "decision", "rule")

    def __init__(self, rule: SignalRule, *, asks: bool) -> None:
        self.rule = rule
        self._types = frozenset(each for each in rule.targets if isinstance(each, TargetType))
        self._globs = tuple(
            (Glob(each.glob), each.kind)
            for each in rule.targets
            if isinstance(each, ProcessPattern)
        )
        self._pid_ranges = tuple(each for each in rule.targets if isinstance(each, PidRange))
        self.decision = decision_of(rule, asks=asks)._replace(
            redirect_signal=rule.redirect_signal, fallback=rule.fallback, log=rule.log
        )

    def matches(self, request: SignalRequest) -> bool:
        wanted = self.rule.handled
        return self.target_matches(request) and (wanted is None or wanted is known(request.handled))

    def target_matches(self, request: SignalRequest) -> bool:
        return (
            not self.rule.targets
            or not self._types.isdisjoint(request.target_types)
            or any(
                (kind is None or kind in request.target_types)
                and glob.matches(request.target_command)
                for glob, kind in self._globs
            )
            or any(each.minimum <= request.target_pid <= each.maximum for each in self._pid_ranges)
        )


def is_system_file(program: Program) -> bool:
    fact = program.system_file
    return may_be_the_systems(program.path) if fact is None else known(fact)


# Signal 0 asks whether a process exists. The filter allows it without a notification; should a
# request for it be judged all the same, a default of deny must not break `kill -0`.
PROBE = Decision(action=Action.ALLOW, rule=PROBE_RULE, reason="signal 0 sends nothing", log=False)
