from __future__ import annotations

from typing import Any

from sigwrap.events import Event
from sigwrap.policy.tools.tries import Tries


class Refused(Tries):
    def again(self, path: object, pid: int = 11, rule: str = "r", **more: Any) -> bool:
        payload = {"path": path, "argv": ["rm"], "rule_name": rule}
        return self.is_another(Event(1, 1, "exec_denied", pid, payload, ""), **more)


def test_three_folders_of_path_are_one_try() -> None:
    tries = Refused()
    paths = ("/usr/bin/rm", "/bin/rm", "/sbin/rm")
    assert [tries.again(each) for each in paths] == [False, True, True]
    assert not tries.again("/bin/rm"), "the same folder again: it tries anew"


def test_another_program_is_no_other_try_of_this_one() -> None:
    tries = Refused()
    assert not tries.again("/bin/rm")
    assert not tries.again("/usr/sbin/shutdown"), "under the same words, it would not be seen"
    assert not tries.again("/bin/shutdown", rule="other")


def test_another_process_tries_for_itself() -> None:
    tries = Refused()
    assert not tries.again("/usr/bin/rm")
    assert not tries.again("/bin/rm", pid=12)
    tries.ended(12)
    assert not tries.again("/sbin/rm", pid=12), "its number is another's now"
    tries.ended(99)


def test_what_was_not_told_is_told_at_the_next_try() -> None:
    tries = Refused()
    assert not tries.again("/usr/bin/rm", is_told=False)
    assert tries.again("/bin/rm", is_told=False)
    assert not tries.again("/sbin/rm")
    assert tries.again("/opt/rm")


def test_any_number_of_tries_and_processes_is_bounded() -> None:
    tries = Refused()
    found = [tries.again(f"/{number}/rm") for number in range(10_000)]
    assert found.count(False) > 100
    for pid in range(5_000):
        tries.again("/bin/rm", pid=pid)
    assert len(tries._refused) <= 1_000
    assert not tries.again(7)
