"""Checks of what a run's start needs from the kernel, up to the command's exec."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from sigwrap.bare import signal
from sigwrap.doctor import items
from sigwrap.doctor.items import Finding, unchecked
from sigwrap.errors import KernelError, SigwrapError
from sigwrap.linux import landlock, libc, pidfd, proc_files, procfs, ptrace
from sigwrap.linux.execs.tracing import tracer_of
from sigwrap.linux.memory import Memory, Unreadable
from sigwrap.policy.judge.engine import Engine
from sigwrap.run.lacking import NOT_TRACED, missing_interception
from sigwrap.run.launch import Launch, launch
from sigwrap.run.opening import new_session_id
from sigwrap.run.settings import DEFAULT_POLICY, RunSettings
from sigwrap.run.walls import Walls, walls_of
from sigwrap.start.command import Inherited
from sigwrap.start.policy_files import host_variables, load_with_sources

START_ITEMS = (
    *(items.LISTENER, items.KILLABLE_WAIT, items.WAKE_UP, items.TRACING),
    *(items.SIGNAL_SANDBOX, items.FILE_SANDBOX, items.OTHER_CGROUPS),
)
INSIDE = "cannot be checked in a session"
_SETTINGS = RunSettings(("true",))
_NO_PROGRAM = b"/nowhere"  # the child never executes it
_YAMA = "/proc/sys/kernel/yama/ptrace_scope"
_SEEN_IN_CHILD = b"copied by fork"


def try_start(*, inside: bool) -> list[Finding]:
    """Try a start, in a child process.

    `inside` a session, nothing is traced: that session would take it for an attack.
    """
    proc_files.hold()
    pidfd.require()
    libc.set_child_subreaper()
    inherited = Inherited.capture()
    policy, _ = load_with_sources(DEFAULT_POLICY, variables=host_variables(_SETTINGS.root))
    walls = walls_of(Engine(policy), goes_without=policy.tolerates_old_kernels)
    launched = launch(_NO_PROGRAM, _SETTINGS.command, new_session_id(), inherited, walls)
    try:
        found = list(_listener_findings(launched, inherited))
        found.append(unchecked(items.TRACING, INSIDE) if inside else _tracing(launched.pid))
    finally:
        os.kill(launched.pid, signal.SIGKILL)
        os.waitpid(launched.pid, 0)
    return found + list(_sandbox_findings(walls, inside=inside))


def _listener_findings(launched: Launch, inherited: Inherited) -> Iterator[Finding]:
    try:
        missing_interception(launched, _SETTINGS, inherited, lambda _line: None)
    except SigwrapError as refusal:
        is_taken = launched.missing is not None and launched.missing.errno == errno.EBUSY
        shortfall = "taken" if is_taken else "refused"
        yield Finding(items.LISTENER, refusal.message, shortfall, f"sigwrap: {refusal}")
    if launched.listener is None:
        yield unchecked(items.KILLABLE_WAIT, "cannot be checked without a listener")
        yield unchecked(items.WAKE_UP, "cannot be checked without a listener")
        return
    yield Finding(items.LISTENER, "intercepted a call and answered it")
    if launched.waits_through_signals:
        yield Finding(items.KILLABLE_WAIT, "a signal does not interrupt a waiting call")
    else:
        yield Finding(items.KILLABLE_WAIT, "a signal interrupts a waiting call", "absent")
    if launched.listener.wakes_at_once:
        yield Finding(items.WAKE_UP, "synchronous wake-up")
    else:
        yield Finding(items.WAKE_UP, "no synchronous wake-up", "absent")


def _tracing(child: int) -> Finding:
    try:
        with Memory(child) as memory:
            memory.block(id(_SEEN_IN_CHILD), len(_SEEN_IN_CHILD))
    except Unreadable as unreadable:
        why = unreadable.__cause__ or "no such process"
        return _not_traced(f"cannot read a child's memory: {why}")
    tracer = tracer_of(child)
    if tracer:
        found = f"{procfs.comm(tracer)} (pid {tracer}) already traces this process"
        return Finding(items.TRACING, found, "traced")
    try:
        ptrace.seize(child)
        ptrace.interrupt(child)
        os.waitpid(child, ptrace.WALL)
        ptrace.detach(child)
    except KernelError as refusal:
        return _not_traced(refusal.message)
    scope = proc_files.contents(_YAMA)
    yama = "no Yama" if scope is None else f"Yama scope {scope.decode().strip()}"
    return Finding(items.TRACING, f"traced a child and read its memory; {yama}")


def _not_traced(found: str) -> Finding:
    return Finding(items.TRACING, found, "refused", f"sigwrap: {NOT_TRACED}")


def _sandbox_findings(walls: Walls, *, inside: bool) -> Iterator[Finding]:
    abi = landlock.abi()
    version = f"Landlock version {abi}" if abi else "no Landlock"
    if walls.domain:
        yield Finding(items.SIGNAL_SANDBOX, f"{version}; it covers signals and TCP")
    else:
        yield Finding(items.SIGNAL_SANDBOX, version, "absent")
    if landlock.holds_files():
        yield Finding(items.FILE_SANDBOX, version)
    else:
        says = "".join(f"sigwrap: {line}" for line in walls.told[:1])
        yield Finding(items.FILE_SANDBOX, version, "absent", says)
    if inside:
        yield unchecked(items.OTHER_CGROUPS, INSIDE)
        return
    threats = [each for each in walls.without if each.startswith("cgroups: ")]
    if threats:
        yield Finding(items.OTHER_CGROUPS, threats[0].removeprefix("cgroups: "), "open")
    else:
        yield Finding(items.OTHER_CGROUPS, "no process in a session can write to them")
