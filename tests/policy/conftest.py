from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.parse import parse_policy
from sigwrap.policy.problems import InvalidPolicy, Problem

VARIABLES = {"PROJECT_ROOT": "/project/app", "HOME": "/home/user", "USER": "user"}
Parse = Callable[..., Policy]
MakeEngine = Callable[[str], Engine]
Problems = Callable[[str], list[Problem]]


@pytest.fixture
def parse() -> Parse:
    def parse(text: str, bases: Mapping[str, str] | None = None) -> Policy:
        def find_base(name: str, source: Source) -> Source | None:
            known = bases or {}
            return Source(name=name, text=known[name]) if name in known else None

        return parse_policy(
            Source(name="policy.yaml", text=text), variables=VARIABLES, find_base=find_base
        )

    return parse


@pytest.fixture
def engine(parse: Parse) -> MakeEngine:
    """From the sections below `version` and `name`."""

    def engine(sections: str) -> Engine:
        return Engine(parse(f"version: 1\nname: x\n{sections}"))

    return engine


@pytest.fixture
def problems(parse: Parse) -> Problems:
    def problems(sections: str) -> list[Problem]:
        with pytest.raises(InvalidPolicy) as caught:
            parse(f"version: 1\nname: x\n{sections}")
        return list(caught.value.problems)

    return problems
