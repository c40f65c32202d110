"""Commands whose name alone is no reason to allow them."""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import CommandRequest, Program
from sigwrap.policy.tools.by_name import says_too_little
from tests.policy.test_suggest import base

NAMING = "version: 1\nname: x\ncommand_rules:\n- {name: r, commands: [ship], decision: %s}\n"


def says(name: str, engine: Engine | None = None) -> bool:
    program = Program(f"/usr/bin/{name}", name, (name, "x"))
    return says_too_little(name, program, CommandRequest((program,)), engine)


def test_what_destroys_sends_data_or_runs_anything_is_known() -> None:
    known = (
        "rm rmdir dd mkfs mkfs.ext4 shred chmod chown mv cp ln tee truncate find curl wget scp "
        "rsync ssh sh python3.11 node sudo xargs env docker podman kubectl"
    ).split()
    assert [name for name in [*known, "ls", "cat", "grep", "frob"] if says(name)] == known


@pytest.mark.parametrize("decision", ["deny", "approve"])
def test_what_the_recorded_policy_asks_about_or_denies_is_known(decision: str) -> None:
    assert says("ship", Engine(base(NAMING % decision)))
    assert not says("ship", Engine(base(NAMING % "audit")))
