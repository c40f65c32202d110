"""File rules of a policy, for a path and for everything beneath a folder.

Of the rules that name the operation, the first one that matches the path decides; where none does,
the default. `audit` allows and records. A pattern is an absolute path whose parts may
be globs on names. It is about the file, or the folder with everything beneath, which `/**` at its
end only says as well. Paths are as they are on the disk: nothing here looks at a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from sigwrap.bare import NamedTuple
from sigwrap.policy.judge.globs import Glob, is_glob
from sigwrap.policy.judge.layers import always, deciding, is_stricter
from sigwrap.policy.judge.request import Action, Decision, Operation, strictest
from sigwrap.policy.judge.rules import FileRule, Policy, decision_of, default_of

IN_A_FOLDER = frozenset({Operation.CREATE, Operation.DELETE})
"""The kernel checks these against the folder, not the file."""

BENEATH = "**"
PARTED_RULE = "builtin:parted"
CGROUP_RULE = "builtin:cgroups"  # before the rules of the policy
Parts = tuple[str, ...]
Numbers = tuple[int, ...]  # of rules, in their order
NamesIn = Callable[[str], Iterable[tuple[str, bool]] | None]
"""Names in a folder, each with whether it is a folder; None if the folder cannot be read."""


class NumberedFileRule(NamedTuple):
    rule: FileRule
    decision: Decision


class SandboxRule(NamedTuple):
    """Operations that are allowed beneath a folder, or on a file."""

    path: str
    operations: frozenset[Operation]


class _Node:
    """One part of the patterns, as in /name/*/name."""

    __slots__ = ("below", "by_glob", "by_name", "here")

    def __init__(self) -> None:
        self.by_name: dict[str, _Node] = {}
        self.by_glob: dict[str, tuple[Callable[[str], bool], _Node]] = {}
        self.here: dict[Operation, Numbers] = {}  # the rules with a pattern that ends here
        self.below: dict[Operation, list[int]] = {}  # the rules with one that ends further below

    def child(self, part: str) -> _Node:
        if not is_glob(part):
            if part not in self.by_name:
                self.by_name[part] = _Node()
            return self.by_name[part]
        if part not in self.by_glob:
            self.by_glob[part] = Glob(part).matches, _Node()
        return self.by_glob[part][1]


class _Place(NamedTuple):
    """Rules about a path and about what is beneath it."""

    matching: dict[Operation, Numbers]  # the rules about all of it
    nodes: list[_Node]  # of those that are about some of what is beneath

    def inside(self, name: str) -> _Place:
        nodes: list[_Node] = []
        for node in self.nodes:
            if name in node.by_name:
                nodes.append(node.by_name[name])
            for matches, child in node.by_glob.values():
                if matches(name):
                    nodes.append(child)
        matching = self.matching
        for node in nodes:
            if node.here:
                matching = dict(matching)
                for operation, numbers in node.here.items():
                    found = {*matching.get(operation, ()), *numbers}
                    matching[operation] = tuple(sorted(found))
        return _Place(matching, nodes)


class FileRules:
    def __init__(self, rules: Sequence[FileRule], default: Decision) -> None:
        self._rules = rules
        self._decisions = [*map(decision_of, rules), default]
        self._deciding: dict[Numbers, int] = {}
        root = _Node()
        for number, rule in enumerate(rules):
            for path in rule.paths:
                _add(root, parts_of(path), number, rule.operations)
        self._root = _Place(root.here, [root])
        held = {each for each in Operation if self._allows_beneath(each, self._root) is not True}
        self._parting = held - IN_A_FOLDER
        if not self._holds_for_all(Operation.CREATE, self._root):
            held.add(Operation.CREATE)
        self.restricted = frozenset(held)
        """Operations that are denied for some path."""
        self.audited = frozenset(
            each for rule in rules if rule.decision is Action.AUDIT for each in rule.operations
        )
        """Operations that are audited for some path."""
        self.audits = bool(self.audited)

    @classmethod
    def of(cls, policy: Policy) -> FileRules:
        return cls(policy.file_rules, default_of(policy, "file", policy.default_file))

    def decide(self, operation: Operation, path: str) -> Decision:
        *above, name = parts_of(path) or ("",)
        folder = self._place(above)
        place = folder.inside(name) if name else folder
        decision = self._decision(operation, place)
        if decision.action is Action.DENY:
            return decision
        if operation is Operation.EXECUTE:  # the kernel reads what it executes
            return strictest((decision, self._decision(Operation.READ, place)))
        if operation in IN_A_FOLDER and not self._holds_for_all(operation, folder):
            return self._parted(operation, folder, f"/{'/'.join(above)}")
        return decision

    def by_rules(self, operation: Operation, path: str) -> Decision:
        """Decide by the rules alone, apart from what the kernel cannot enforce."""
        return self._decision(operation, self._place(parts_of(path)))

    def holds_for_all(self, operation: Operation, folder: str) -> bool:
        """Return whether the operation is allowed for all present and future names in the folder.

        A file may not be created where nothing more could be done with it.
        """
        return self._holds_for_all(operation, self._place(parts_of(folder)))

    def sandbox_rules(self, names_in: NamesIn) -> Iterator[SandboxRule]:
        """Yield the fewest sandbox rules that allow what the policy allows, and nothing more.

        In a folder of which only a part is allowed, each present name gets its own rule. A name
        that appears later gets none, and files can be neither created nor deleted there.
        """
        waiting = [("/", self._root, self.restricted)]
        while waiting:
            folder, place, operations = waiting.pop()
            said = {each: self._allows_beneath(each, place) for each in operations}
            if said.get(Operation.CREATE) and not self._holds_for_all(Operation.CREATE, place):
                said[Operation.CREATE] = None
            allowed = frozenset(each for each in operations if said[each])
            if allowed:
                yield SandboxRule(folder, allowed)
            open_ = frozenset(each for each in operations if said[each] is None)
            for name, is_folder in (names_in(folder) or ()) if open_ else ():
                path = f"{folder.rstrip('/')}/{name}"
                if is_folder:
                    waiting.append((path, place.inside(name), open_))
                else:
                    yield from self._rule_of_file(path, place.inside(name), open_ - IN_A_FOLDER)

    def _rule_of_file(
        self, path: str, place: _Place, operations: frozenset[Operation]
    ) -> Iterator[SandboxRule]:
        allowed = frozenset(each for each in operations if _lets(self._decision(each, place)))
        if allowed:
            yield SandboxRule(path, allowed)

    def _place(self, parts: Sequence[str]) -> _Place:
        place = self._root
        for part in parts:
            place = place.inside(part)
        return place

    def _decision(self, operation: Operation, place: _Place) -> Decision:
        return self._decisions[self._number(operation, place)]

    def rules_about(self, operation: Operation, path: str) -> list[NumberedFileRule]:
        return self._rules_with(self._place(parts_of(path)).matching.get(operation, ()))

    def _rules_with(self, numbers: Numbers) -> list[NumberedFileRule]:
        return [NumberedFileRule(self._rules[each], self._decisions[each]) for each in numbers]

    def _number(self, operation: Operation, place: _Place) -> int:
        """Return the number of the rule that decides, or that of the default."""
        numbers = place.matching.get(operation, ())
        known = self._deciding.get(numbers)
        if known is None:
            rules = self._rules_with(numbers)
            found = deciding(rules, always)
            known = len(self._rules) if found is None else numbers[rules.index(found)]
            self._deciding[numbers] = known
        return known

    def _parted(self, operation: Operation, place: _Place, folder: str) -> Decision:
        asked = (operation, *self._parting) if operation is Operation.CREATE else (operation,)
        last = len(self._decisions) - 1
        numbers = {self._number(each, place) for each in asked}
        for node in place.nodes:
            numbers.update(*(node.below.get(each, ()) for each in asked))
        denying = (each for each in sorted(numbers) if self._decisions[each].action is Action.DENY)
        number = next(denying, last)
        denier = "the default" if number == last else f"rule {self._decisions[number].rule}"
        done = "created" if operation is Operation.CREATE else "deleted"
        reason = f"{denier} denies part of {folder}, so no file can be {done} directly in it"
        return Decision(Action.DENY, PARTED_RULE, reason)

    def _allows_beneath(self, operation: Operation, place: _Place) -> bool | None:
        """Return whether the operation is allowed on everything beneath; None: on some of it."""
        first = self._number(operation, place)
        said = {_lets(self._decisions[first])}
        # Beneath, a rule may apply that the base holds back here.
        is_held_back = place.matching.get(operation, (first,))[0] < first
        for node in place.nodes:
            for number in node.below.get(operation, ()):
                if number < first or is_held_back or self._may_forbid(number, first):
                    said.add(_lets(self._decisions[number]))
        return None if len(said) > 1 else said.pop()

    def _may_forbid(self, number: int, first: int) -> bool:
        """Return whether a base's rule is stricter than an earlier rule without an override."""
        if first == len(self._rules):
            return False
        base, own = self._rules[number], self._rules[first]
        return (
            base.layer < own.layer
            and base.name not in (own.overrides or ())
            and is_stricter(base.decision, own.decision)
        )

    def _holds_for_all(self, operation: Operation, place: _Place) -> bool:
        if self._allows_beneath(operation, place) is not True:
            return False
        return operation is not Operation.CREATE or all(
            self._allows_beneath(each, place) is not None for each in self._parting
        )


def parts_of(path: str) -> Parts:
    """Split a pattern into parts, without a last `**`, which every pattern implies."""
    parts = tuple(filter(None, path.split("/")))
    return parts[:-1] if parts[-1:] == (BENEATH,) else parts


def _add(root: _Node, parts: Parts, number: int, operations: Iterable[Operation]) -> None:
    node = root
    for part in parts:
        for operation in operations:
            node.below.setdefault(operation, []).append(number)
        node = node.child(part)
    for operation in operations:
        node.here[operation] = (*node.here.get(operation, ()), number)


def _lets(decision: Decision) -> bool:
    return decision.action is not Action.DENY
