"""Load a policy with its bases and variables, and report the problems of all files at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sigwrap.bare import Any
from sigwrap.policy.judge.files import FileRules
from sigwrap.policy.judge.rules import Policy, Rule
from sigwrap.policy.language import beforehand
from sigwrap.policy.language.document import (
    IMPLIED,
    MappingNode,
    Node,
    Parts,
    ScalarNode,
    ShippedForm,
    Source,
)
from sigwrap.policy.language.fill import (
    BUILT_IN,
    Filler,
    Room,
    TooLong,
    UnknownVariable,
    substitute,
    variable_problem,
)
from sigwrap.policy.problems import InvalidPolicy, Place, Problem

MAX_BASES = 8
_RULES = ("command_rules", "signal_rules", "file_rules", "network_rules")
_NO_MOUNTS = (
    "file_rules that deny something forbid all mounts: remove `session: {mounts: true}`, or allow "
    "everything in a first rule for /**"
)

# Finds the source for a name in `extends`; the second argument is the source that extends it.
FindBase = Callable[[str, Source], Source | None]


def parse_policy(source: Source, *, variables: Mapping[str, str], find_base: FindBase) -> Policy:
    loader = _Loader(variables, find_base)
    policy = loader.load(source, {}, ())
    if policy is None:
        raise InvalidPolicy(loader.problems)
    return policy._replace(warnings=tuple(loader.warnings), home=variables.get("HOME", ""))


class _Loader:
    def __init__(self, variables: Mapping[str, str], find_base: FindBase) -> None:
        self._built_in = {name: variables[name] for name in BUILT_IN if variables.get(name)}
        self._find_base = find_base
        self._room = Room()
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []  # of the file itself, not of its bases

    def load(
        self, source: Source, overrides: Mapping[str, str], above: tuple[str, ...]
    ) -> Policy | None:
        """Return None if there is a problem; `overrides` are variables of extending policies."""
        form = beforehand.form_of(source)
        if form is not None:
            return self._checked_beforehand(form, source, overrides, above)
        try:
            from sigwrap.policy.language.yaml_text import read_document  # not for shipped ones

            document = read_document(source)
        except InvalidPolicy as error:
            self.problems.extend(error.problems)
            return None
        # A run under a shipped policy does not need these.
        from sigwrap.policy.language import build
        from sigwrap.policy.language.check import Checker
        from sigwrap.policy.language.schema import POLICY

        variables = {**self._own_variables(document), **overrides}
        base = self._base(_entry(document, "extends"), source, variables, above)
        inherited = dict(base.variables) if base else {}
        checker = Checker(
            {**self._built_in, **inherited, **variables}, self._room, shipped=source.shipped
        )
        checked = checker.group(document, POLICY)
        found = build.inconsistencies(checked, base, shipped=source.shipped)
        self.problems += [*checker.problems, *found]
        if not above:
            self.warnings += checker.warnings
        if self.problems:
            return None
        policy = _policy(source, build.parts(checked), {**inherited, **variables}, base)
        if policy.session.mounts and FileRules.of(policy).restricted:
            keys = [
                each for each in ("session", "file_rules", "defaults") if each in checked.places
            ]
            at = checked.places[keys[0]] if keys else checked.place
            self.problems.append(Problem(place=at, message=_NO_MOUNTS))
            return None
        folder = self._built_in.get("PROJECT_ROOT", "/")
        return policy._replace(
            cases=tuple(build.case(each, folder) for each in checked.get("tests", ())),
        )

    def _checked_beforehand(
        self,
        form: ShippedForm,
        source: Source,
        variables: Mapping[str, str],
        above: tuple[str, ...],
    ) -> Policy | None:
        base = None
        if form.base is not None:
            line, column, name = form.base
            node = ScalarNode(Place(source.name, line, column), name, name)
            base = self._base(node, source, variables, above)
        known = {**(dict(base.variables) if base else {}), **variables}
        filler = Filler({**self._built_in, **known}, self._room, shipped=True)
        parts = beforehand.parts(form, source.name, filler)
        self.problems += filler.problems
        if self.problems:
            return None
        return _policy(source, parts, known, base)

    def _own_variables(self, document: Node) -> dict[str, str]:
        values: dict[str, str] = {}
        node = _entry(document, "vars")
        if not isinstance(node, MappingNode):
            return values
        for key, value in node.entries:
            if key.text in BUILT_IN:
                message = "a built-in variable cannot be set"
                self.problems.append(Problem(place=key.place, message=message, offending=key.text))
            elif isinstance(value, ScalarNode) and isinstance(value.value, str):
                known = {**self._built_in, **values}
                try:
                    values[key.text] = substitute(value.value, known, self._room)
                except TooLong as error:
                    self.problems.append(variable_problem(value.place, error, known))
                    break
                except UnknownVariable as error:
                    self.problems.append(variable_problem(value.place, error, known))
        return values

    def _base(
        self,
        node: Node | None,
        source: Source,
        variables: Mapping[str, str],
        above: tuple[str, ...],
    ) -> Policy | None:
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str) or not node.value:
            return None
        chain = (*above, source.name)
        base = self._find_base(node.value, source)
        if base is None:
            message = "no policy or file with this name to extend"
        elif base.name in chain:
            message = f"circular extends ({' → '.join([*chain, base.name])})"
        elif len(chain) > MAX_BASES:
            message = f"more than {MAX_BASES} policies extend each other"
        else:
            return self.load(base, variables, chain)
        self.problems.append(Problem(place=node.place, message=message, offending=node.value))
        return None


def _policy(
    source: Source, parts: Parts, variables: Mapping[str, str], extended: Policy | None
) -> Policy:
    base = extended or Policy()
    network = parts.network
    inherited = {name: getattr(base, name) for name in _RULES}
    # The first rule of a section has its highest layer.
    layers = max((1 + rules[0].layer for rules in inherited.values() if rules), default=0)
    if network:
        kept = (each for each in base.network_rules if each.name not in IMPLIED)
        inherited["network_rules"] = (*kept, *network.implied)
    rules: dict[str, Any] = {
        name: (*(_above(each, layers) for each in getattr(parts, name)), *beneath)
        for name, beneath in inherited.items()
    }
    sections = {
        name: getattr(base, name)._replace(**fields) for name, fields in parts.sections.items()
    }
    return base._replace(
        file=source.name,
        bases=(base.name, *base.bases) if extended else (),
        default_network=network.action if network else base.default_network,
        variables=tuple(variables.items()),
        network_place=network.place if network else base.network_place,
        cases=(),
        base_cases=(*base.cases, *base.base_cases),
        # A base's are not inherited.
        **{"description": "", "sequence": 0, "expires": "", **parts.values},
        **sections,
        **rules,
    )


def _above(rule: Rule, layers: int) -> Rule:
    return rule._replace(layer=rule.layer + layers) if layers else rule


def _entry(document: Node, key: str) -> Node | None:
    if not isinstance(document, MappingNode):
        return None
    return next((value for name, value in document.entries if name.text == key), None)
