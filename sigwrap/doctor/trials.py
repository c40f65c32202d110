"""Every check in its order, and a whole test run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from sigwrap import status as statuses
from sigwrap.bare.contextlib import suppress
from sigwrap.doctor import environment, items, start
from sigwrap.doctor.child import NoResult, in_child, interrupts_deferred
from sigwrap.doctor.items import ITEMS, Finding, Level, level_of, unchecked
from sigwrap.errors import KernelError, NoInterception, SigwrapError, StoreError
from sigwrap.linux import limits, proc_files, procfs
from sigwrap.linux import process as linux_process
from sigwrap.linux.execs import repeated
from sigwrap.linux.limits import Limit
from sigwrap.linux.peer import is_inside_a_session
from sigwrap.linux.removal import empty_folder
from sigwrap.linux.seccomp import UNTRIED_VARIABLE, demand_known_calls
from sigwrap.machine import IS_AARCH64, IS_X86_64, PLATFORM
from sigwrap.start import onefile
from sigwrap.store.catalog import open_session
from sigwrap.store.location import default_store
from sigwrap.tuples import NamedTuple

_WITHIN_S = 15.0
_RUN_WITHIN_S = 60.0
_LONGEST_OUTPUT = 4096
_NO_PROC = "cannot be checked without /proc"
_NEED_PROC = (*start.START_ITEMS, items.CGROUP, items.TERMINAL, items.LIBC, items.STORE, items.RUN)


def all_findings(store: str | None, own_words: int) -> list[Finding]:
    """Return a finding for each item.

    `store` is the user's choice. `own_words` is how many words of this process's command line are
    sigwrap's arguments.
    """
    callers_limits = limits.of_the_caller()
    limits.lift(callers_limits)
    sample = SampleRun(own_words, _store_folder(store), callers_limits)
    with interrupts_deferred():
        found = {each.item: each for each in _findings(store, sample)}
    return [found[item] for item in ITEMS]


def _findings(store: str | None, sample: SampleRun) -> Iterator[Finding]:
    yield _machine()
    inside = is_inside_a_session()
    yield _session(inside)
    yield _accelerator()
    yield from _checked([items.PROCESSES], _one(environment.try_processes))
    (proc,) = _checked([items.PROC], _one(environment.try_proc))
    yield proc
    left_out: dict[str, str] = {}
    if level_of(proc) is Level.NO:
        left_out = dict.fromkeys(_NEED_PROC, _NO_PROC)
    elif inside:
        left_out = dict.fromkeys((items.CGROUP, items.RUN), start.INSIDE)
    checks: dict[tuple[str, ...], Callable[[], list[Finding]]] = {
        (items.KILL_SWITCH,): _one(partial(environment.try_kill_switch, store)),
        (items.OPEN_FILES,): _one(environment.try_open_files),
        (items.LIMITS,): _one(environment.try_limits),
        (items.CGROUP,): _one(environment.try_cgroup),
        (items.MEMORY_FILES,): _one(environment.try_memory_files),
        (items.TERMINAL,): _one(environment.try_terminal),
        (items.TEMPORARY,): _one(environment.try_temporary),
        (items.LIBC,): _one(environment.try_libc),
        (items.USER_NAMESPACES,): _one(environment.try_user_namespaces),
        (items.STORE,): _one(partial(environment.try_store, store)),
        start.START_ITEMS: partial(start.try_start, inside=inside),
    }
    for wanted, check in checks.items():
        if wanted[0] in left_out:
            yield from (unchecked(item, left_out[item]) for item in wanted)
        else:
            yield from _checked(wanted, check)
    if items.RUN in left_out:
        yield unchecked(items.RUN, left_out[items.RUN])
    else:
        yield from _checked([items.RUN], lambda: [sample.run()], in_a_child=False)


def _store_folder(named: str | None) -> str:
    """Return the store, or nothing if there is none."""
    try:
        return default_store(os.environ) if named is None else named
    except StoreError:
        return ""


def _one(check: Callable[[], Finding]) -> Callable[[], list[Finding]]:
    return lambda: [check()]


def _checked(
    wanted: Sequence[str], check: Callable[[], list[Finding]], *, in_a_child: bool = True
) -> list[Finding]:
    try:
        if not in_a_child:
            return check()
        return [Finding(*row) for row in in_child(check, within_s=_WITHIN_S)]
    except NoResult as why:
        return [unchecked(item, str(why)) for item in wanted]
    except KernelError as refusal:  # no process could be created
        if list(wanted) == [items.PROCESSES]:
            return [Finding(wanted[0], refusal.message, "refused", f"sigwrap: {refusal}")]
        return [unchecked(item, refusal.message) for item in wanted]


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
    if repeated.is_wanted():
        return Finding(items.ACCELERATOR, "loaded")
    if os.environ.get(repeated.PURE_VARIABLE):
        return Finding(items.ACCELERATOR, f"{repeated.PURE_VARIABLE} is set", "off")
    return Finding(items.ACCELERATOR, "the extension was not compiled", "absent")


class SampleRun(NamedTuple):
    """A run of `true`, started as this process was, with a store that is removed again."""

    own_words: int
    store: str  # empty if it is not known
    callers_limits: tuple[Limit, ...]  # as they were before they were lifted

    def run(self) -> Finding:
        store = self._new_store()
        if not store:
            return unchecked(items.RUN, "no directory for its log")
        found = os.lstat(store)
        try:
            return self._run(store)
        finally:
            empty_folder(store, (found.st_dev, found.st_ino))
            with suppress(OSError):
                os.rmdir(store)

    def _run(self, store: str) -> Finding:
        status, output = in_child(lambda: self._status_and_output(store), within_s=_RUN_WITHIN_S)
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

    def _status_and_output(self, store: str) -> tuple[int, str]:
        path = os.path.join(store, "output")
        output = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        ours = proc_files.all_contents("/proc/self/cmdline").split(b"\0")[:-1]
        start_words = ours[: len(ours) - self.own_words]
        line = [*start_words, b"--no-report", b"--store", os.fsencode(store), b"--", b"true"]
        variables = onefile.original_environment(procfs.environment())
        pid = linux_process.fork()
        if pid == 0:
            try:
                null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
                for fd, stream in ((null, 0), (null, 1), (output, 2)):
                    os.dup2(fd, stream)
                limits.give_back(self.callers_limits)
                os.execve(proc_files.link("/proc/self/exe"), line, variables)
            finally:
                os._exit(statuses.REFUSED)
        _, status = os.waitpid(pid, 0)
        text = os.pread(output, _LONGEST_OUTPUT, 0).decode("utf-8", "replace")
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else statuses.from_signal(-code), text

    def _new_store(self) -> str:
        """Create a temporary directory, or one beside the store if only that is writable."""
        for folder in (*environment.temporary_folders(), _nearest(self.store)):
            path = os.path.join(folder, f"sigwrap-doctor-{os.urandom(6).hex()}")
            with suppress(OSError):
                os.mkdir(path, 0o700)
                return path
        return ""


def _nearest(path: str) -> str:
    """Return the path, or the first directory above it that exists."""
    while path and not os.path.isdir(path):
        path = os.path.dirname(path) if path != "/" else ""
    return path
