from __future__ import annotations

from sigwrap.exec.facts import Retries
from sigwrap.session.lineage import Process


def process() -> Process:
    return Process(pid=11, ppid=1, start_time=0, parent=None, depth=1, comm="sh")


def is_retry(retries: Retries, path: object, by: Process, *argv: str, rule: str = "r") -> bool:
    return retries.is_one(by, {"path": path, "argv": list(argv) or ["rm"], "rule_name": rule})


def test_a_command_in_the_next_directory_of_path_is_a_retry() -> None:
    retries, shell = Retries(), process()
    paths = ("/usr/bin/rm", "/bin/rm", "/sbin/rm")
    assert [is_retry(retries, each, shell) for each in paths] == [False, True, True]
    assert not is_retry(retries, "/bin/rm", shell), "the same directory again: a new attempt"


def test_another_command_or_rule_is_no_retry() -> None:
    retries, shell = Retries(), process()
    assert not is_retry(retries, "/bin/rm", shell)
    assert not is_retry(retries, "/usr/bin/rm", shell, "rm", "-r")
    assert not is_retry(retries, "/usr/sbin/shutdown", shell, "rm", "-r")
    assert not is_retry(retries, "/bin/shutdown", shell, "rm", "-r", rule="other")


def test_another_process_with_the_same_pid_makes_its_own_attempt() -> None:
    retries = Retries()
    assert not is_retry(retries, "/usr/bin/rm", process())
    assert not is_retry(retries, "/bin/rm", process())


def test_any_number_of_retries_and_processes_is_bounded() -> None:
    retries, shell = Retries(), process()
    assert [is_retry(retries, f"/{n}/rm", shell) for n in range(10_000)].count(False) > 100
    for _ in range(5_000):
        is_retry(retries, "/bin/rm", process())
    assert len(retries._denied) <= 1_000
    assert not is_retry(retries, 7, process())
