"""Launch the command: give its process the orders (start/child.py) and take its listener; what
this machine lacks for a run; agents.
"""

from __future__ import annotations

import errno
import marshal
import os
import select
from collections.abc import Callable

from sigwrap.bare import NamedTuple, signal, socket
from sigwrap.calls import Under
from sigwrap.errors import (
    DOCTOR,
    NOT_FOUND,
    KernelError,
    NoInterception,
    SessionError,
)
from sigwrap.events import LEFT_TO_ANOTHER
from sigwrap.kernel import landlock, paths, procfs, seccomp
from sigwrap.kernel.descriptors import take_descriptor
from sigwrap.kernel.seccomp import Listener
from sigwrap.machine import Capability
from sigwrap.session.sandbox import FileSandbox, Sandbox
from sigwrap.session.settings import Nested, RunSettings
from sigwrap.start.child import ANSWERED, GO, PROBE_ANSWER, Child, Orders, Ready
from sigwrap.start.command import CommandError, HostEnvironment, Inherited, find_program
from sigwrap.text import masked, printable, shell_words, shortened

Tell = Callable[[str], None]

NOT_TRACED = f"sigwrap may not read or trace the command's process ({DOCTOR})"
_OF_THE_MACHINE = ("rule builtin:unreadable", "rule builtin:traced")
_DAEMON_CHARACTERS = 60
_HANDSHAKE_TIMEOUT_S = 10.0
_LONGEST_MESSAGE = 4096
_NO_FILE_SANDBOX = FileSandbox(frozenset(), (), by_policy=False)


class Launch(NamedTuple):
    """A child that waits for permission to exec."""

    pid: int
    channel: socket.socket
    listener: Listener | None = None  # None without a filter
    waits_through_signals: bool = False

    def go(self) -> None:
        try:
            self.channel.send(GO)
        except OSError:
            pass  # it was killed: the supervisor sees its end elsewhere

    def exec_failure(self) -> int | None:
        """Return the errno; None if the exec succeeded or the child was killed. Call it when the
        channel is readable."""
        try:
            data = self.channel.recv(_LONGEST_MESSAGE)
        except ConnectionResetError:  # it was killed before it read the permission
            return None
        return marshal.loads(data) if data else None

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.channel.close()


def launch(
    child: Child,
    program: bytes,
    session_id: str,
    environment: HostEnvironment,
    sandbox: Sandbox | None,
) -> Launch:
    """Have the child get ready. Without `sandbox`, it has no filter; with it, raise NoInterception
    if there can be none."""
    child.channel.settimeout(_HANDSHAKE_TIMEOUT_S)
    orders = Orders(program, environment.given, environment.removed, session_id)
    if sandbox is None:
        child.order(orders)
        return Launch(child.pid, child.channel)
    try:
        _order_into(sandbox, child, orders)
        return _shake_hands(child.pid, child.channel)
    except KernelError as refusal:
        Launch(child.pid, child.channel).kill()
        hint = refusal.hint or seccomp.NEEDS
        raise NoInterception(refusal.message, refusal.errno, hint) from refusal


def _order_into(sandbox: Sandbox, child: Child, orders: Orders) -> None:
    seccomp.demand_known_calls()
    paths.demand_openat2()
    orders = orders._replace(
        filter=seccomp.encode(
            seccomp.mediation_filter(
                sandbox.unlogged_signals, under=sandbox.filtered, questions=sandbox.domain
            )
        ),
        hands_over_listener=Under.DATAGRAM_RULES not in sandbox.filtered,
    )
    restricted, allowed, *_ = sandbox.files or _NO_FILE_SANDBOX
    if not (sandbox.domain or restricted):
        child.order(orders)
        return
    ruleset = landlock.make_ruleset(
        restricted,
        allowed,
        keeps_signals=sandbox.domain,
        connects=Under.NETWORK_RULES not in sandbox.filtered,
    )
    try:
        child.order(orders, ruleset)
    finally:
        os.close(ruleset)


def _shake_hands(pid: int, channel: socket.socket) -> Launch:
    try:
        try:
            message, fds, _flags, _address = socket.recv_fds(channel, _LONGEST_MESSAGE, 1)
        except ConnectionResetError:  # it was killed before it read the orders
            message = b""
        if not message:
            raise NoInterception(
                "the command's process ended before it was ready",
                0,
                "a signal killed it, perhaps for lack of memory: try again",
            )
        ready = Ready(*marshal.loads(message))
        if ready.refusal:
            raise NoInterception(ready.refusal, ready.number, ready.hint)
        fd = fds[0] if fds else _taken(pid, ready.number)
        os.set_inheritable(fd, False)
        listener = Listener(fd)
        _answer_probe(listener, pid, ready.waits_through_signals)
        if channel.recv(1) != ANSWERED:
            raise NoInterception(
                "the seccomp listener was installed, but its answers don't arrive", 0
            )
    except TimeoutError as silence:
        raise NoInterception("the command's process did not get ready in time", 0) from silence
    return Launch(pid, channel, listener, ready.waits_through_signals)


def _taken(pid: int, fd: int) -> int:
    try:
        return take_descriptor(pid, fd)
    except OSError as refusal:
        why = f"the seccomp listener cannot be taken: {refusal.strerror}"
        raise NoInterception(why, refusal.errno or 0) from refusal


def _answer_probe(listener: Listener, child: int, waits_through_signals: bool) -> None:
    poll = select.poll()
    poll.register(listener.fd, select.POLLIN)
    if not poll.poll(_HANDSHAKE_TIMEOUT_S * 1000):
        raise NoInterception("the seccomp listener was installed, but receives nothing", 0)
    probe = listener.receive()
    if probe is None or not listener.is_waiting(probe.id):
        raise NoInterception("the seccomp listener lost its first request", 0)
    if waits_through_signals:
        os.kill(child, signal.SIGUSR1)  # the kernel promised that it does not interrupt the request
    listener.succeed(probe.id, PROBE_ANSWER)


def agreed_to_run_without(
    refusal: NoInterception, settings: RunSettings, outer: str, tell: Tell
) -> str:
    """Return what this run lacks. Raise if the user did not agree to run without interception.

    `outer`: the name of the outer session, or empty.
    """
    where = f"session {outer}" if outer else "another supervisor"
    is_nested = refusal.errno == errno.EBUSY
    if is_nested and settings.nested is Nested.JOIN:
        tell(f"in {where}: the command runs under its rules and in its log")
        return f"{LEFT_TO_ANOTHER}{where}"
    if is_nested and outer:
        raise SessionError(
            f"already in session {outer}",
            "--nested join runs the command under that session's rules",
        )
    if settings.best_effort:
        tell(f"running without interception: {refusal.message}")
        return f"{LEFT_TO_ANOTHER}{where}" if is_nested else f"interception: {refusal.message}"
    raise refusal


def outer_session(refusal: NoInterception, inherited: Inherited) -> str:
    """Return the outer session's name; empty if there is none, or its variable is missing."""
    if refusal.errno != errno.EBUSY:
        return ""
    return inherited.environment.get(b"SIGWRAP_SESSION", b"").decode("utf-8", "replace")


def capabilities_of(launched: Launch, sandbox: Sandbox) -> list[str]:
    if launched.listener is None:
        return []
    found = [
        Capability.INTERCEPTION,
        Capability.VERIFICATION,
        Capability.REPLACEMENT,
        Capability.DELIVERY,
    ]
    if sandbox.takes_descriptors and launched.listener.can_put_descriptors():
        found.append(Capability.RECORDING)
    if launched.waits_through_signals:
        found.append(Capability.WAITS_THROUGH_SIGNALS)
    return [each.value for each in (*found, *sandbox.capabilities)]


def is_of_the_machine(denial: str) -> bool:
    """Return whether a denial of the command's own process shows a limit of the machine."""
    return any(rule in denial for rule in _OF_THE_MACHINE)


class Agent:
    """An agent that has a preset (policies/presets), started with or without it."""

    def __init__(self, name: str, *, by_preset: bool) -> None:
        from sigwrap.policy.presets import PRESETS  # few runs need it

        self._preset = PRESETS[name]
        self._by_preset = by_preset

    def find(self, command: str, inherited: Inherited) -> tuple[bytes, Inherited]:
        """Return the program and what it inherits."""
        preset = self._preset
        if self._by_preset:
            added = {os.fsencode(name): os.fsencode(value) for name, value in preset.environment}
            inherited = inherited._replace(environment={**added, **inherited.environment})
        try:
            return find_program(command, inherited.environment), inherited
        except CommandError as missing:
            if missing.status != NOT_FOUND:
                raise
            hint = f"to install it: {preset.install}"
            raise CommandError(missing.message, missing.status, hint) from missing

    def warn_of_sandbox(self, command: tuple[str, ...], policy: str, tell: Tell) -> None:
        """Tell about the agent's own sandbox, under a policy with file rules."""
        preset = self._preset
        without = " ".join(preset.without_sandbox[:1])
        if self._by_preset and without and without in " ".join(command):
            tell(f"{preset.name}'s own sandbox is off: the file rules of {policy} protect files")
        elif preset.makes_sandbox(command):
            tell(
                f"the file_rules of {policy} forbid mounts, so {preset.program} cannot make its "
                f"own sandbox, and commands in it fail (start without it: sigwrap {preset.name})"
            )

    def daemons_outside(self, tell: Tell) -> list[str]:
        """Warn of each daemon of the agent that runs as the same user, and return them for the
        log."""
        preset, found = self._preset, []
        for pid in sorted(procfs.all_pids()) if preset.daemons else ():
            try:
                is_of_same_user = procfs.file_status(f"/proc/{pid}").st_uid == os.geteuid()
            except OSError:
                continue  # it has ended
            argv = preset.as_daemon(procfs.arguments(pid)) if is_of_same_user else ()
            if not argv:
                continue
            found.append(f"{pid} {' '.join(masked(argv))}")
            shown = printable(shortened(shell_words(argv), _DAEMON_CHARACTERS))
            said = f"{shown} (PID {pid}) runs outside this session"
            if self._by_preset:  # which keeps the agent from using the daemon
                tell(
                    f"{said}: sigwrap keeps {preset.program} from using it, but does not judge "
                    f"other work handed to it (stop it: {preset.stop})"
                )
            else:
                tell(
                    f"{said}; sigwrap does not judge work handed to it (stop it: {preset.stop}; "
                    f"or run sigwrap {preset.name}, which does not use it)"
                )
        return found
