"""A shipped policy as it was checked beforehand (sigwrap/policy/shipped), but for its tests: no run
has to wait until its text is read, and held against the schema. What it says of variables is filled
in here, as in any other policy.

Its rules are tuples of their fields. In the place of a text with variables is one that begins with
None; policy/tools/shipped.py writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sigwrap.hints import Any
from sigwrap.policy.judge.match import escape_glob
from sigwrap.policy.judge.request import Action, CommandRedirect, Operation, TargetType, Via
from sigwrap.policy.judge.rules import (
    CommandRule,
    FileRule,
    NetworkRule,
    PidRange,
    ProcessPattern,
    SignalRule,
    Target,
)
from sigwrap.policy.language.document import ScalarNode, Source, digest_of, form_of_shipped
from sigwrap.policy.language.fill import Filler, Wrong
from sigwrap.policy.language.parts import Checked, Parts
from sigwrap.policy.problems import Place


def form_of(source: Source) -> Any:
    """None where it has another text now: somebody is about to change the policy."""
    if not (source.shipped and source.for_a_run):
        return None
    form = form_of_shipped(source.name)
    return form if digest_of(source.text) == form.DIGEST else None


def parts(form: Any, file: str, filler: Filler) -> Parts:
    reader = _Reader(file, filler)
    return Parts(
        reader.checked(form.SECTIONS),
        tuple(map(reader.command_rule, form.COMMAND_RULES)),
        tuple(map(reader.signal_rule, form.SIGNAL_RULES)),
        tuple(map(reader.file_rule, form.FILE_RULES)),
        tuple(map(reader.network_rule, form.NETWORK_RULES)),
    )


class _Reader:
    def __init__(self, file: str, filler: Filler) -> None:
        self._file = file
        self._filler = filler

    def checked(self, form: tuple[int, int, Mapping[str, Any]]) -> Checked:
        line, column, entries = form
        checked = Checked(place=Place(self._file, line, column))
        for key, (at_line, at_column, value) in entries.items():
            checked.places[key] = Place(self._file, at_line, at_column)
            is_group = isinstance(value, dict)
            checked.values[key] = self.checked((at_line, at_column, value)) if is_group else value
        return checked

    def command_rule(self, form: tuple[Any, ...]) -> CommandRule:
        line, column, name, description, commands, args, flags, args_patterns, *rest = form
        subcommands, paths, sources, min_depth, max_depth, sha256, not_sha256, *rest = rest
        truncated, traced, system_file, loads_code, decision, message, *rest = rest
        redirect_to, escalate, *overrides = rest
        return CommandRule(
            Place(self._file, line, column),
            name,
            description,
            self._texts(commands),
            None if args is None else self._texts(args),
            flags,
            self._texts(args_patterns),
            subcommands,
            self._texts(paths),
            self._texts(sources),
            min_depth,
            max_depth,
            frozenset(sha256),
            frozenset(not_sha256),
            truncated,
            traced,
            system_file,
            loads_code,
            Action(decision),
            message,
            self._redirect(redirect_to) if redirect_to else None,
            escalate,
            *overrides,
        )

    def signal_rule(self, form: tuple[Any, ...]) -> SignalRule:
        line, column, name, description, signals, targets, handled, decision, *rest = form
        message, redirect_signal, fallback, log, escalate, *overrides = rest
        return SignalRule(
            Place(self._file, line, column),
            name,
            description,
            frozenset(signals),
            tuple(map(self._target, targets)),
            handled,
            Action(decision),
            message,
            redirect_signal,
            Action(fallback) if fallback else None,
            log,
            escalate,
            *overrides,
        )

    def file_rule(self, form: tuple[Any, ...]) -> FileRule:
        line, column, name, description, paths, operations, decision, *rest = form
        make_missing, *overrides = rest
        return FileRule(
            Place(self._file, line, column),
            name,
            description,
            self._texts(paths),
            tuple(map(Operation, operations)),
            Action(decision),
            make_missing,
            *overrides,
        )

    def network_rule(self, form: tuple[Any, ...]) -> NetworkRule:
        line, column, name, description, destinations, ports, protocol, direction, *rest = form
        decision, message, *overrides = rest
        return NetworkRule(
            Place(self._file, line, column),
            name,
            description,
            self._texts(destinations),
            ports,
            protocol,
            direction,
            Action(decision),
            message,
            *overrides,
        )

    def _redirect(self, form: tuple[Any, ...]) -> CommandRedirect:
        command, args, append_args, env, via, record = form
        (command,) = self._texts((command,)) or ("",)
        values = self._texts([text for _, text in env])
        env = tuple(zip([name for name, _ in env], values, strict=False))
        return CommandRedirect(command, self._texts(args), append_args, env, Via(via), record)

    def _target(self, form: str | tuple[Any, ...]) -> Target:
        if isinstance(form, str):
            return TargetType(form)
        if isinstance(form[0], int):
            return PidRange(*form)
        glob, kind = form
        (glob,) = self._texts((glob,)) or ("",)
        return ProcessPattern(glob, TargetType(kind) if kind else None)

    def _texts(self, texts: Sequence[str | tuple[Any, ...]]) -> tuple[str, ...]:
        """Of which one is wrong, they are left out: its problem was noted."""
        if tuple not in map(type, texts):
            return tuple(texts)  # type: ignore[arg-type]
        try:
            return tuple(self._filled(each) if type(each) is tuple else each for each in texts)  # type: ignore[misc]
        except Wrong:
            return ()

    def _filled(self, form: tuple[Any, ...]) -> str:
        _, kind, name, text, line, column = form
        node = ScalarNode(Place(self._file, line, column), text, text)
        return FILLED[kind](self._filler, node, text, name)


# By what a key calls such a text.
FILLED: dict[str, Callable[[Filler, ScalarNode, str, str], str]] = {
    "path": Filler.path,
    "place": Filler.path,
    "program": lambda filler, node, text, name: filler.path(node, text, name, may_be_a_name=True),
    "regex": lambda filler, node, text, _name: filler.regex(node, text),
    "template": lambda filler, node, text, _name: filler.substituted(node, text),
    "host_template": lambda filler, node, text, _name: filler.substituted(
        node, text, host_allowed=True
    ),
    "glob": lambda filler, node, text, name: filler.glob(
        node, filler.substituted(node, text, escape=escape_glob), name
    ),
}
