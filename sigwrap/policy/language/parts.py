"""What a policy's file comes to before it is put on its base: checked values, and rules."""

from __future__ import annotations

from sigwrap.hints import Any
from sigwrap.policy.judge.rules import CommandRule, FileRule, NetworkRule, SignalRule
from sigwrap.policy.problems import Place
from sigwrap.tuples import NamedTuple


class Checked:
    """A mapping's values by key, each with its place; what was absent or wrong is not there."""

    __slots__ = ("place", "places", "values")

    def __init__(
        self,
        *,
        place: Place,
        values: dict[str, Any] | None = None,
        places: dict[str, Place] | None = None,
    ) -> None:
        self.place = place
        self.values = {} if values is None else values
        self.places = {} if places is None else places

    def get(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    def place_of(self, key: str) -> Place:
        return self.places.get(key, self.place)


class Parts(NamedTuple):
    checked: Checked
    command_rules: tuple[CommandRule, ...] = ()
    signal_rules: tuple[SignalRule, ...] = ()
    file_rules: tuple[FileRule, ...] = ()
    network_rules: tuple[NetworkRule, ...] = ()
