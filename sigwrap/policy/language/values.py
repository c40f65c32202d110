"""Checked values to the fields of rules, and back, as the keys declare it."""

from __future__ import annotations

from sigwrap.bare.enum import Enum
from sigwrap.hints import Any
from sigwrap.policy.judge.request import TargetType
from sigwrap.policy.judge.rules import Depth, PidRange, ProcessPattern, Target
from sigwrap.policy.judge.signals import ALL, signal_name, signal_number, signal_numbers
from sigwrap.policy.language.shapes import Group, ListOf, Shape, Word
from sigwrap.policy.problems import Place


class Checked:
    """A mapping's values by key, each with its place; what was absent or wrong is not there."""

    __slots__ = ("place", "places", "values")

    def __init__(self, place: Place) -> None:
        self.place = place
        self.values: dict[str, Any] = {}
        self.places: dict[str, Place] = {}

    def get(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    def place_of(self, key: str) -> Place:
        return self.places.get(key, self.place)


def made(checked: Checked, group: Group) -> Any:
    """Return the rule or section that a checked mapping describes."""
    place = {"place": checked.place} if "place" in group.type._fields else {}
    return group.type(**place, **fields(checked, group))


def fields(checked: Checked, group: Group) -> dict[str, Any]:
    return {
        key.field: _field(checked.values[key.name], key.shape)
        if key.make is None
        else key.make(checked.values[key.name])
        for key in group.keys
        if key.name in checked.values
    }


def _field(value: Any, shape: Shape) -> Any:
    match shape:
        case Word():
            return shape.type(value)
        case ListOf():
            return tuple(_field(each, shape.item) for each in value)
        case Group():
            return made(value, shape)
        case _:
            return value


def entries(value: Any, group: Group) -> dict[str, Any]:
    """Return the keys and values of a rule or section, without what is left at its default."""
    shown = {}
    for key in group.keys:
        if (key.old and key.new) or key.field not in value._fields:  # `any`: see policy/tools/show
            continue
        given = getattr(value, key.field)
        if key.required or given != value._field_defaults.get(key.field):
            shown[key.name] = _shown(given, key.shape) if key.show is None else key.show(given)
    return shown


def _shown(value: Any, shape: Shape) -> Any:
    match value:
        case Enum():
            return value.value
        case frozenset():
            return sorted(value)
        case tuple() if isinstance(shape, Group):
            return entries(value, shape)
        case tuple():
            return [_shown(each, shape) for each in value]
        case _:
            return value


def is_deeper(above: Depth | None, below: Depth | None) -> bool:
    """Return whether the second range of depths is within the first."""
    if above is None:
        return True
    least, last = below or Depth()
    return above.min <= least and (above.max is None or (last is not None and last <= above.max))


def signals(words: tuple[str, ...]) -> frozenset[int]:
    return frozenset().union(*(signal_numbers(word) or () for word in words))


def shown_signals(numbers: frozenset[int]) -> list[str]:
    return ["@all"] if numbers == ALL else list(map(signal_name, sorted(numbers)))


def redirect_signal(value: str | Checked) -> int:
    return signal_number(value if isinstance(value, str) else value.get("signal")) or 0


def targets(value: Any) -> tuple[Target, ...]:
    return tuple(map(_target, listed(value)))


def _target(target: str | Checked) -> Target:
    if isinstance(target, str):
        return TargetType(target)
    match target.get("type"):
        case "process":
            return ProcessPattern(glob=target.get("pattern"))
        case "pid_range":
            return PidRange(minimum=target.get("min"), maximum=target.get("max"))
        case word if "pattern" in target.places:
            return ProcessPattern(glob=target.get("pattern"), kind=TargetType(word))
        case word:
            return TargetType(word)


def shown_targets(given: tuple[Target, ...]) -> list[Any]:
    return list(map(_shown_target, given))


def _shown_target(target: Target) -> Any:
    match target:
        case TargetType():
            return target.value
        case ProcessPattern(glob=glob, kind=kind):
            return {"type": "process" if kind is None else kind.value, "pattern": glob}
        case PidRange():
            return {"type": "pid_range", "min": target.minimum, "max": target.maximum}


def listed(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)
