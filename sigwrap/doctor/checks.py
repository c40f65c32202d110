"""Checks of what a run's start needs from the kernel, and of what a run finds: /proc, limits,
directories, terminals, libraries. Each runs in a child process."""

from __future__ import annotations

import errno
import mmap
import os
import resource
import sys
from collections.abc import Iterator, Sequence

from sigwrap.approve.typists import find_typist
from sigwrap.bare import signal, suppress
from sigwrap.control import killswitch
from sigwrap.control.activation import hides_processes
from sigwrap.control.usage import make_groups
from sigwrap.doctor import items
from sigwrap.doctor.items import Finding, unchecked
from sigwrap.errors import KernelError, NoInterception, SessionError, SigwrapError, StoreError
from sigwrap.exec.verify import tracer_of
from sigwrap.kernel import landlock, libc, limits, procfs, ptrace, signals, terminals
from sigwrap.kernel import process as linux_process
from sigwrap.kernel.descriptors import require_enough
from sigwrap.kernel.file_state import file_system_of as kind_of
from sigwrap.kernel.memory import Memory, Unreadable
from sigwrap.log.folder import default_store, new_session_id, sessions_folder
from sigwrap.log.writer import SessionLog
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.globs import Glob
from sigwrap.policy.judge.network import SOCKETS
from sigwrap.session.launch import NOT_TRACED, Launch, agreed_to_run_without, launch, outer_session
from sigwrap.session.sandbox import Sandbox, plan_sandbox
from sigwrap.session.settings import DEFAULT_POLICY, RunSettings
from sigwrap.start import own_code
from sigwrap.start.child import fork_child
from sigwrap.start.command import HostEnvironment, Inherited
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
    procfs.hold()
    signals.require_pidfds()
    libc.set_child_subreaper()
    inherited = Inherited.capture()
    policy, _ = load_with_sources(DEFAULT_POLICY, variables=host_variables(_SETTINGS.root))
    sandbox = plan_sandbox(Engine(policy), goes_without=policy.tolerates_old_kernels)
    given = inherited.environment
    orders = (_NO_PROGRAM, new_session_id(), HostEnvironment(given, given, ()))
    try:
        launched = launch(fork_child(_SETTINGS.command, inherited), *orders, sandbox)
        found = list(_listener_findings(launched))
    except NoInterception as refusal:
        launched = launch(fork_child(_SETTINGS.command, inherited), *orders, None)
        found = _no_listener_findings(refusal, inherited)
    try:
        found.append(unchecked(items.TRACING, INSIDE) if inside else _tracing(launched.pid))
    finally:
        launched.kill()
    return found + list(_sandbox_findings(sandbox, inside=inside))


def _no_listener_findings(refusal: NoInterception, inherited: Inherited) -> list[Finding]:
    why: SigwrapError = refusal
    try:
        outer = outer_session(refusal, inherited)
        agreed_to_run_without(refusal, _SETTINGS, outer, lambda _line: None)
    except SigwrapError as in_session:
        why = in_session
    shortfall = "taken" if refusal.errno == errno.EBUSY else "refused"
    return [
        Finding(items.LISTENER, why.message, shortfall, f"sigwrap: {why}"),
        unchecked(items.KILLABLE_WAIT, "cannot be checked without a listener"),
        unchecked(items.WAKE_UP, "cannot be checked without a listener"),
    ]


def _listener_findings(launched: Launch) -> Iterator[Finding]:
    assert launched.listener is not None, "it has a sandbox"
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
    scope = procfs.contents(_YAMA)
    yama = "no Yama" if scope is None else f"Yama scope {scope.decode().strip()}"
    return Finding(items.TRACING, f"traced a child and read its memory; {yama}")


def _not_traced(found: str) -> Finding:
    return Finding(items.TRACING, found, "refused", f"sigwrap: {NOT_TRACED}")


def _sandbox_findings(sandbox: Sandbox, *, inside: bool) -> Iterator[Finding]:
    abi = landlock.abi()
    version = f"Landlock version {abi}" if abi else "no Landlock"
    if sandbox.domain:
        yield Finding(items.SIGNAL_SANDBOX, f"{version}; it covers signals and TCP")
    else:
        yield Finding(items.SIGNAL_SANDBOX, version, "absent")
    if landlock.holds_files():
        yield Finding(items.FILE_SANDBOX, version)
    else:
        says = "".join(f"sigwrap: {line}" for line in sandbox.told[:1])
        yield Finding(items.FILE_SANDBOX, version, "absent", says)
    if inside:
        yield unchecked(items.OTHER_CGROUPS, INSIDE)
        return
    threats = [each for each in sandbox.without if each.startswith("cgroups: ")]
    if threats:
        yield Finding(items.OTHER_CGROUPS, threats[0].removeprefix("cgroups: "), "open")
    else:
        yield Finding(items.OTHER_CGROUPS, "no process in a session can write to them")


_NAMED_BY = ("TMPDIR", "TEMP", "TMP")
_OTHERWISE = ("/tmp", "/var/tmp", "/usr/tmp")
_NEW_USER = 0x10000000  # CLONE_NEWUSER
_A_LIBRARY = "_ctypes"
_MUCH_MEMORY = 1 << 40


def try_kill_switch(store: str | None) -> Finding:
    folder = default_store(os.environ) if store is None else store
    try:
        unseen = killswitch.refuse_if_on(killswitch.stores(folder, os.environ), store)
    except SessionError as refusal:
        return Finding(items.KILL_SWITCH, refusal.message, "on", f"sigwrap: {refusal}")
    if unseen:
        return Finding(items.KILL_SWITCH, unseen[0], "unseen", f"sigwrap: {unseen[0]}")
    return Finding(items.KILL_SWITCH, "off")


def try_proc() -> Finding:
    procfs.hold()
    try:
        procfs.require()
    except SessionError as refusal:
        return Finding(items.PROC, refusal.message, "absent", f"sigwrap: {refusal}")
    if procfs.can_be_covered():
        return Finding(items.PROC, "this user may mount over /proc", "coverable")
    if hides_processes():
        return Finding(items.PROC, "/proc hides the processes of other users (hidepid)", "hides")
    how = "a private mount" if procfs.is_ours() else "this user cannot mount over /proc"
    return Finding(items.PROC, how)


def try_processes() -> Finding:
    try:
        pid = linux_process.fork()
    except KernelError as refusal:
        return Finding(items.PROCESSES, refusal.message, "refused", f"sigwrap: {refusal}")
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return Finding(items.PROCESSES, f"fork works; {_most(resource.RLIMIT_NPROC)}")


def try_open_files() -> Finding:
    try:
        require_enough()
    except SessionError as refusal:
        return Finding(items.OPEN_FILES, refusal.message, "few", f"sigwrap: {refusal}")
    return Finding(items.OPEN_FILES, _most(resource.RLIMIT_NOFILE))


def _most(kind: int) -> str:
    _soft, hard = resource.getrlimit(kind)
    return "no limit" if hard == resource.RLIM_INFINITY else f"at most {hard}"


def try_limits() -> Finding:
    tight = ", ".join(limits.not_lifted())
    if tight:
        return Finding(items.LIMITS, tight, "tight", f"sigwrap: {tight} {limits.LIMIT_US_TOO}")
    return Finding(items.LIMITS, "no hard limit that affects sigwrap")


def try_cgroup() -> Finding:
    pid = linux_process.fork()
    if pid == 0:
        libc.set_parent_death_signal(signal.SIGKILL)
        signal.pause()
    groups = make_groups(new_session_id(), pid, _MUCH_MEMORY)
    counts = ["processor time"] if any(each.counts_time for each in groups) else []
    counts += ["memory"] if any(each.counts_memory for each in groups) else []
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    for group in groups:
        group.remove()
    if not counts:
        return Finding(items.CGROUP, "cannot create one in this process's cgroup", "absent")
    return Finding(items.CGROUP, f"created; it counts {' and '.join(counts)}")


def try_memory_files() -> Finding:
    path = getattr(sys.modules.get(_A_LIBRARY), "__file__", None)
    try:
        if path is None:  # it is built into the interpreter
            os.close(own_code.sealed(_A_LIBRARY, b""))
        else:
            with open(path, "rb") as file:
                own_code.load_library(own_code.sealed(path, file.read()))
    except (OSError, ImportError) as refusal:
        return Finding(items.MEMORY_FILES, str(refusal), "refused")
    return Finding(items.MEMORY_FILES, "loaded a library from memory")


def try_terminal() -> Finding:
    procfs.hold()
    terminals.hold()
    try:
        for fd in os.openpty():
            os.close(fd)
    except OSError as refusal:
        return Finding(
            items.TERMINAL, f"cannot create a pseudo-terminal: {refusal.strerror}", "no pty"
        )
    if terminals.controlling < 0:
        return Finding(items.TERMINAL, "no controlling terminal", "none")
    typist = find_typist(in_domain=landlock.is_available(), keeps=_agent_default_keeps).typist
    if typist is not None:
        return Finding(items.TERMINAL, typist.why, "typed")
    return Finding(items.TERMINAL, "approval requests can be shown on it")


def _agent_default_keeps(sockets: Sequence[str]) -> bool:
    names = [name for each in ("tmux", "screen", "zellij") for name in SOCKETS[each]]
    kept = [any(Glob(name).matches(each) for name in names) for each in sockets]
    return bool(kept) and all(kept)


def try_libc() -> Finding:
    try:
        version = os.confstr("CS_GNU_LIBC_VERSION")
    except (OSError, ValueError):
        version = None
    if version is None:
        return Finding(items.LIBC, "not glibc", "other")
    return Finding(items.LIBC, version)


def try_user_namespaces() -> Finding:
    if libc.libc.unshare(_NEW_USER) != 0:
        why = libc.failure("unshare").message
        return Finding(items.USER_NAMESPACES, f"cannot create one: {why}", "refused")
    return Finding(items.USER_NAMESPACES, "created one")


def try_store(store: str | None) -> Finding:
    procfs.hold()
    made: list[str] = []
    try:
        folder = sessions_folder(default_store(os.environ) if store is None else store)
        made = _missing_folders(folder)
        log = SessionLog.create(os.path.dirname(folder), new_session_id())
        log.discard()
        return _of_file_system(folder)
    except StoreError as refusal:
        return Finding(items.STORE, refusal.message, "refused", f"sigwrap: {refusal}")
    finally:
        for each in made:
            with suppress(OSError):
                os.rmdir(each)


def _missing_folders(path: str) -> list[str]:
    """Return the directories that do not exist yet, the lowest first."""
    missing = []
    while path and not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    return missing


def _of_file_system(folder: str) -> Finding:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        kind, is_local = kind_of(fd)
        status = os.fstatvfs(fd)
    finally:
        os.close(fd)
    room = status.f_bavail * status.f_frsize
    found = f"created a log; {kind or 'unknown file system'}, {room >> 20} MiB free"
    return Finding(items.STORE, found, "" if is_local else "served")


def temporary_folders() -> list[str]:
    """Return the directories that the binary's bootloader tries, in its order."""
    named = [os.environ[name] for name in _NAMED_BY if os.environ.get(name)]
    return [*named, *_OTHERWISE]


def try_temporary() -> Finding:
    why = ""
    for folder in temporary_folders():
        path = os.path.join(folder, f"sigwrap-doctor-{os.urandom(6).hex()}")
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700)
        except OSError as refusal:
            why = why or f"{folder}: {refusal.strerror}"
            continue
        os.unlink(path)
        return _mapped_as_code(folder, fd)
    return Finding(items.TEMPORARY, why, "unusable")


def _mapped_as_code(folder: str, fd: int) -> Finding:
    try:
        os.write(fd, bytes(mmap.PAGESIZE))
        mmap.mmap(fd, mmap.PAGESIZE, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC).close()
    except PermissionError:
        return Finding(items.TEMPORARY, f"{folder}: mounted noexec", "noexec")
    except OSError as refusal:
        return Finding(items.TEMPORARY, f"{folder}: {refusal.strerror}", "unusable")
    return Finding(items.TEMPORARY, f"{folder}: writable, allows executables")
