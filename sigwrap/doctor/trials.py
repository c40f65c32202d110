"""Every check in its order, and a whole test run.

A check runs in a child process. What it does to the process (a seccomp filter stays) or its limits
ends with the child, which ends within a bounded time, with all processes that it started.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from sigwrap import errors as statuses
from sigwrap.bare import json, signal, suppress
from sigwrap.doctor import checks, items
from sigwrap.doctor.items import ITEMS, Finding, Level, level_of, unchecked
from sigwrap.errors import KernelError, NoInterception, SigwrapError, StoreError
from sigwrap.exec import compiled
from sigwrap.kernel import libc, limits, procfs
from sigwrap.kernel import process as linux_process
from sigwrap.kernel.libc import seconds_until
from sigwrap.kernel.limits import Limit
from sigwrap.kernel.peer import is_inside_a_session
from sigwrap.kernel.seccomp import UNTRIED_VARIABLE, demand_known_calls
from sigwrap.log.catalog import open_session
from sigwrap.log.folder import default_store
from sigwrap.machine import IS_AARCH64, IS_X86_64, PLATFORM
from sigwrap.start import onefile
from sigwrap.start.onefile import empty_folder
from sigwrap.text import printable

_WITHIN_S = 15.0
_RUN_WITHIN_S = 60.0
_CLEANS_UP_WITHIN_S = 2.0  # a check that was interrupted
_SWEEP_S = 5.0
_LONGEST_OUTPUT = 4096
_DEFERRED = frozenset({signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
_NO_PROC = "cannot be checked without /proc"
_NEED_PROC = (
    *checks.START_ITEMS,
    *(items.CGROUP, items.MEMORY_FILES, items.TERMINAL, items.LIBC, items.STORE, items.RUN),
)

Check = Callable[[], Finding | list[Finding]]


def all_findings(store: str | None) -> list[Finding]:
    """Return a finding for each item; `store` is the user's choice.

    Ctrl+C ends the running check, which cleans up; other signals wait until the last one is done.
    """
    callers_limits = limits.of_the_caller()
    limits.lift(callers_limits)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _DEFERRED)
    on_interrupt = signal.signal(signal.SIGINT, _interrupt_once)
    libc.set_child_subreaper()
    try:
        found = {each.item: each for each in _findings(store, callers_limits)}
    finally:
        signal.signal(signal.SIGINT, on_interrupt)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return [found[item] for item in ITEMS]


def _findings(store: str | None, callers_limits: tuple[Limit, ...]) -> Iterator[Finding]:
    yield _machine()
    inside = is_inside_a_session()
    yield _session(inside)
    yield _accelerator()
    yield from _checked([items.PROCESSES], checks.try_processes)
    (proc,) = _checked([items.PROC], checks.try_proc)
    yield proc
    left_out: dict[str, str] = {}
    if level_of(proc) is Level.NO:
        left_out = dict.fromkeys(_NEED_PROC, _NO_PROC)
    elif inside:
        left_out = dict.fromkeys((items.CGROUP, items.RUN), checks.INSIDE)
    others: dict[tuple[str, ...], Check] = {
        (items.KILL_SWITCH,): partial(checks.try_kill_switch, store),
        (items.OPEN_FILES,): checks.try_open_files,
        (items.LIMITS,): checks.try_limits,
        (items.CGROUP,): checks.try_cgroup,
        (items.MEMORY_FILES,): checks.try_memory_files,
        (items.TERMINAL,): checks.try_terminal,
        (items.TEMPORARY,): checks.try_temporary,
        (items.LIBC,): checks.try_libc,
        (items.USER_NAMESPACES,): checks.try_user_namespaces,
        (items.STORE,): partial(checks.try_store, store),
        checks.START_ITEMS: partial(checks.try_start, inside=inside),
        (items.RUN,): partial(_try_run, store, callers_limits),
    }
    for wanted, check in others.items():
        if wanted[0] in left_out:
            yield from (unchecked(item, left_out[item]) for item in wanted)
        else:
            yield from _checked(wanted, check)


def _checked(wanted: Sequence[str], check: Check) -> list[Finding]:
    try:
        found = check() if items.RUN in wanted else in_child(check, within_s=_WITHIN_S)
    except NoResult as why:
        return [unchecked(item, str(why)) for item in wanted]
    except KernelError as refusal:  # no process could be created
        if list(wanted) == [items.PROCESSES]:
            return [Finding(wanted[0], refusal.message, "refused", f"sigwrap: {refusal}")]
        return [unchecked(item, refusal.message) for item in wanted]
    return [Finding(*row) for row in ([found] if len(wanted) == 1 else found)]


def _session(inside: bool) -> Finding:
    if not inside:
        return Finding(items.SESSION, "not in a session")
    outer = os.environ.get("SIGWRAP_SESSION", "")
    return Finding(items.SESSION, f"in session {outer}" if outer else "in a session", "inside")


def _machine() -> Finding:
    try:
        demand_known_calls()
    except NoInterception as refusal:
        shortfall = "untried" if IS_AARCH64 else "unknown"
        return Finding(items.MACHINE, refusal.message, shortfall, f"sigwrap: {refusal}")
    if IS_X86_64:
        return Finding(items.MACHINE, PLATFORM)
    return Finding(items.MACHINE, f"{PLATFORM}, and {UNTRIED_VARIABLE} is set", "being tried")


def _accelerator() -> Finding:
    if compiled.is_wanted():
        return Finding(items.ACCELERATOR, "loaded")
    if os.environ.get(compiled.PURE_VARIABLE):
        return Finding(items.ACCELERATOR, f"{compiled.PURE_VARIABLE} is set", "off")
    return Finding(items.ACCELERATOR, "the extension was not compiled", "absent")


def _try_run(store: str | None, callers_limits: tuple[Limit, ...]) -> Finding:
    """Run `true` with a store that is removed again, under the limits that the caller set."""
    folder = _new_folder(store)
    if not folder:
        return unchecked(items.RUN, "no directory for its log")
    found = os.lstat(folder)
    try:
        status, output = in_child(
            lambda: _status_and_output(folder, callers_limits), within_s=_RUN_WITHIN_S
        )
        return _run_finding(folder, status, output)
    finally:
        empty_folder(folder, (found.st_dev, found.st_ino))
        with suppress(OSError):
            os.rmdir(folder)


def _run_finding(store: str, status: int, output: str) -> Finding:
    if status == statuses.NOT_FOUND:
        return unchecked(items.RUN, "the command true is missing")
    if status != 0:
        lines = " / ".join(output.splitlines())
        return Finding(items.RUN, f"exited with status {status}", "refused", lines)
    try:
        first = open_session(store, "").first()
    except SigwrapError as failure:
        return Finding(items.RUN, str(failure), "refused")
    missing = [] if first is None else first.payload["missing"]
    if missing:
        return Finding(items.RUN, f"true ran; missing: {'; '.join(missing)}", "less")
    return Finding(items.RUN, "true ran; nothing is missing")


def _status_and_output(store: str, callers_limits: tuple[Limit, ...]) -> tuple[int, str]:
    path = os.path.join(store, "output")
    output = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    line = [*onefile.own_line(), "--no-report", "--store", store, "--", "true"]
    variables = onefile.original_environment(procfs.environment())
    pid = linux_process.fork()
    if pid == 0:
        try:
            null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            for fd, stream in ((null, 0), (null, 1), (output, 2)):
                os.dup2(fd, stream)
            limits.give_back(callers_limits)
            os.execve(line[0], line, variables)
        finally:
            os._exit(statuses.REFUSED)
    _, status = os.waitpid(pid, 0)
    text = os.pread(output, _LONGEST_OUTPUT, 0).decode("utf-8", "replace")
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else statuses.from_signal(-code), text


def _new_folder(store: str | None) -> str:
    """Create a temporary directory, or one beside the store if only that is writable."""
    try:
        above = default_store(os.environ) if store is None else store
    except StoreError:
        above = ""
    while above and not os.path.isdir(above):
        above = os.path.dirname(above) if above != "/" else ""
    for folder in (*checks.temporary_folders(), above):
        path = os.path.join(folder, f"sigwrap-doctor-{os.urandom(6).hex()}")
        with suppress(OSError):
            os.mkdir(path, 0o700)
            return path
    return ""


class NoResult(Exception):
    """Says why a check has no result."""


def in_child(check: Callable[[], Any], *, within_s: float) -> Any:
    """Return the check's result, passed as JSON, or raise NoResult."""
    read_fd, write_fd = os.pipe()
    parent = os.getpid()
    # The child takes no Ctrl+C before it can end quietly.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        pid = linux_process.fork()
    except SigwrapError:
        os.close(read_fd)
        os.close(write_fd)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise
    if pid == 0:
        _answer(check, write_fd, parent, before)
    os.close(write_fd)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        output = _read_all(read_fd, time.monotonic() + within_s)
    except NoResult:
        os.kill(pid, signal.SIGKILL)
        raise
    except KeyboardInterrupt:
        os.kill(pid, signal.SIGINT)
        with suppress(NoResult):
            _read_all(read_fd, time.monotonic() + _CLEANS_UP_WITHIN_S)
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(read_fd)
        os.waitpid(pid, 0)
        with suppress(OSError):  # without /proc, its descendants cannot be found
            linux_process.Sweep(lambda _pid, _status: None).run(timeout_s=_SWEEP_S)
    answer = json.loads(output) if output else {"failure": "the process that ran this check died"}
    if "failure" in answer:
        raise NoResult(answer["failure"])
    return answer["result"]


def _answer(check: Callable[[], Any], fd: int, parent: int, mask: Iterable[int]) -> None:
    """Write the result and end this process."""
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        libc.set_parent_death_signal(signal.SIGKILL)
        if os.getppid() == parent:
            os.write(fd, json.dumps(_result(check)).encode())
    finally:
        os._exit(0)


def _interrupt_once(number: int, _frame: object) -> None:
    """Interrupt the check, but not its cleaning up: Ctrl+C and the parent both send a SIGINT."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _result(check: Callable[[], Any]) -> dict[str, Any]:
    try:
        return {"result": check()}
    except Exception as failure:  # an unknown machine can fail in any way
        why = str(failure) if isinstance(failure, SigwrapError | OSError) else repr(failure)
        return {"failure": printable(why) or type(failure).__name__}


def _read_all(fd: int, until_s: float) -> bytes:
    output = b""
    while select.select([fd], [], [], seconds_until(until_s))[0]:
        data = os.read(fd, 1 << 16)
        if not data:
            return output
        output += data
    raise NoResult("took too long")
