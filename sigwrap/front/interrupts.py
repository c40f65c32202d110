"""Decides when to ask the command to end, and when the user's key was meant for the command.

A terminal's Ctrl+C reaches the command too, since it shares sigwrap's process group. A command that
handles SIGINT is then already cleaning up, and a SIGTERM would interrupt the cleanup of programs
without a handler for it (Python's KeyboardInterrupt, pytest, make). So it gets half of the grace
period before the SIGTERM; other commands get the SIGTERM at once. A command that ignores SIGINT, as
in system(3), leaves the key to the program that it waits for, and has half of the grace period to
go on after it. A signal from a process is passed on as itself if the command handles it: a server
may end differently for each.

A prompt's Ctrl+C ends a line, not the program. A line editor at a prompt takes the terminal out of
line mode. But readline restores it briefly while it handles the key, and a program that computes
between two prompts has the terminal in line mode as well. So an interrupt that the command survives
can be withdrawn: when the terminal is in an editor's mode again, or, a second after the key, the
command waits for a line. A second key kills only if no prompt comes back within a moment. Ctrl+\\
always ends the run, since a prompt may not answer.

One key press may arrive twice: the bootloader of a one-file binary gets the terminal's signal too
and forwards a copy (BootloaderCopies); timeout(1) signals its child and then the group. Two presses
of a key always come from the terminal, so those always count.

Pure: FrontProcess (front/process.py) carries out what is decided here.
"""

from __future__ import annotations

from sigwrap.bare import TYPE_CHECKING, Enum, NamedTuple, signal

if TYPE_CHECKING:
    from sigwrap.front.messages import Sender
    from sigwrap.front.process import FrontProcess

JOB_STOPS = frozenset({signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})
_STOPS_IN_BACKGROUND = frozenset({signal.SIGTTIN, signal.SIGTTOU})
INTERRUPTS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})

_ECHO_WINDOW_S = 0.3
_COPY_WINDOW_S = 2.0  # on a loaded machine the bootloader runs late
_SAME_KEYS_S = 0.5
_FIRST_LOOK_S = 0.005  # a script may go on as soon as it sees the prompt
_LOOKS_EVERY_S = 0.02
_PROMPT_COMES_BACK_S = 0.25  # the user does not notice that a second key kills so much later
_LINE_IS_A_PROMPT_S = 1.0
_ORPHANED_GRACE_S = 1.5  # a CI runner kills the rest 2.5 s after its SIGTERM
_DEATH_WITHIN_S = 0.25  # otherwise it is a prompt without a handler for a moment (readline)
_MESSAGE_AFTER_S = _LINE_IS_A_PROMPT_S  # a command that ends or prompts by then needs no message


class InterruptsEnd(Enum):
    """The value of `--interrupt`: what SIGINT ends."""

    AUTO = "auto"
    COMMAND = "command"  # always for the command alone
    SIGWRAP = "sigwrap"  # always ends the run


class Arrived(NamedTuple):
    """A signal reached the front process."""

    number: int
    from_terminal: bool
    sender_pid: int
    went_to_command: bool = True  # if the terminal sent it
    command_handles_it: bool = False
    command_ignores_it: bool = False
    command_outlives_it: bool = False  # catches, ignores or waits for it; known for SIGHUP only
    is_ignored: bool = False  # by the command, as its caller set it
    is_hangup: bool = False  # the terminal hung up
    at_prompt: bool = False
    goes_to_job: bool = False  # passed on, it reaches the command's whole process group
    sender: Sender | None = None  # None for the terminal, and for sigwrap itself

    @property
    def reached_command(self) -> bool:
        return self.from_terminal and self.went_to_command


class BootloaderCopies:
    """Recognizes signals that the bootloader of the one-file binary forwards.

    The kernel signals a group's newest process first, so a copy never comes before its original. It
    may come alone: a job is stopped between the two, and the SIGCONT of its `fg` removes the
    original from the queue.
    """

    def __init__(self, bootloader_pid: int, *, on_terminal: bool) -> None:
        self.bootloader_pid = bootloader_pid
        self._on_terminal = on_terminal
        self._originals: dict[int, float] = {}  # number -> when
        self._keys: dict[int, float] = {}

    def has_copy(self, number: int, sender_pid: int, now: float) -> bool:
        """Return whether this is the copy of a signal that the whole group got."""
        if sender_pid == self.bootloader_pid != 0:
            if self._on_terminal and number in _STOPS_IN_BACKGROUND:
                return True
            original = self._originals.pop(number, None)
            return original is not None and now - original <= _COPY_WINDOW_S
        self._originals[number] = now
        return False

    def stands_for_key(self, arrived: Arrived, now: float) -> bool:
        """Return whether a bootloader's signal without an original is a key: the kernel merged the
        key's own signal with an earlier copy that was still pending."""
        if arrived.from_terminal:
            self._keys[arrived.number] = now
        pressed_at = self._keys.get(arrived.number)
        is_bootloaders = arrived.sender_pid == self.bootloader_pid != 0
        return is_bootloaders and pressed_at is not None and now - pressed_at <= _SAME_KEYS_S


class _State(Enum):
    RUNNING = "running"
    STOPPING = "stopping"
    KILLING = "killing"


class Interrupts:
    def __init__(
        self,
        do: FrontProcess,
        copies: BootloaderCopies,
        *,
        grace_s: float,
        ends: InterruptsEnd = InterruptsEnd.AUTO,
    ) -> None:
        self._do = do
        self._copies = copies
        self._grace_s = grace_s
        self._ends = ends
        self._state = _State.RUNNING
        self._began_at = 0.0
        self._is_key = False
        self._look_at: float | None = None  # None if the interrupt cannot be withdrawn
        self._terminate_at: float | None = None
        self._message_at: float | None = None  # None if the message was shown, or is not needed
        self._kill_at = 0.0
        self._kill_why = ""
        self._last: tuple[Arrived, float] | None = None
        self._has_hung_up = False

    @property
    def interrupted(self) -> bool:
        return self._state is not _State.RUNNING

    @property
    def next_deadline(self) -> float | None:
        if self._state is not _State.STOPPING:
            return None
        times = (self._look_at, self._terminate_at, self._message_at, self._kill_at)
        return min(each for each in times if each is not None)

    def signal(self, arrived: Arrived, now: float) -> None:
        if self._is_echo(arrived, now):
            return
        if self._ends is InterruptsEnd.AUTO and self._copies.stands_for_key(arrived, now):
            arrived = arrived._replace(from_terminal=True)
        if arrived.is_ignored and arrived.number in INTERRUPTS:
            return
        if not _interrupts(arrived):
            # The command got SIGWINCH and SIGTSTP too.
            if not arrived.from_terminal or arrived.number == signal.SIGHUP:
                self._pass_on_as_itself(arrived)
            return
        if arrived.number == signal.SIGHUP and self._has_hung_up:
            return  # the shell sends one, and the kernel another at the shell's end
        self._has_hung_up = self._has_hung_up or arrived.is_hangup
        self._last = (arrived, now)
        if not self._is_for_command(arrived):
            self.interrupt(arrived, now)
            return
        if self._look_at is not None:
            self._withdraw()
        self._do.announce(arrived, ends_run=False)
        self._pass_on_as_itself(arrived)

    def caller_ended(self, arrived: Arrived, now: float) -> None:
        """Interrupt the run as a SIGTERM does, with less grace: whatever ended the caller, such as
        a CI runner, soon kills the rest."""
        if self._state is _State.RUNNING:
            self._begin(arrived, now)
        elif self._state is _State.STOPPING and self._terminate_at is not None:
            self._do.pass_on(arrived.number, arrived.sender)
        self._look_at = self._terminate_at = self._message_at = None
        if now + _ORPHANED_GRACE_S < self._kill_at:
            self._kill_at = now + _ORPHANED_GRACE_S
            self._kill_why = "its caller ended"

    def interrupt(self, arrived: Arrived, now: float) -> None:
        """Interrupt the run, never the command alone."""
        if self._state is _State.RUNNING:
            self._begin(arrived, now)
        elif self._state is _State.STOPPING:
            self._second(arrived, now)

    def tick(self, now: float) -> None:
        if self._state is not _State.STOPPING:
            return
        speaks_next = self._message_at is not None and now >= self._message_at
        if self._look_at is not None and (now >= self._look_at or speaks_next):
            is_late = now - self._began_at >= _LINE_IS_A_PROMPT_S
            if self._do.is_at_prompt(or_reads_a_line=is_late or speaks_next):
                self._withdraw()
                return
            so_far_s = max(now - self._began_at, _FIRST_LOOK_S)
            self._look_at = now + min(so_far_s, _LOOKS_EVERY_S)
        self._on_time(now)

    def _is_for_command(self, arrived: Arrived) -> bool:
        """Return whether the interrupt is for the command alone."""
        if arrived.number != signal.SIGINT:
            return False
        is_running = self._state is _State.RUNNING
        match self._ends:
            case InterruptsEnd.COMMAND:
                return is_running
            case InterruptsEnd.SIGWRAP:
                return False
            case InterruptsEnd.AUTO:
                is_of_a_prompt = arrived.from_terminal and arrived.at_prompt
                return is_of_a_prompt and (is_running or self._look_at is not None)

    def _begin(self, arrived: Arrived, now: float) -> None:
        self._state = _State.STOPPING
        self._began_at = now
        self._is_key = arrived.from_terminal and arrived.number == signal.SIGINT
        self._kill_at = now + self._grace_s
        self._kill_why = "the grace period ended"
        self._message_at = now + _MESSAGE_AFTER_S
        self._do.announce(arrived, ends_run=True)
        can_be_withdrawn = self._ends is InterruptsEnd.AUTO and _is_ctrl_c(arrived)
        reaches_job = can_be_withdrawn or arrived.goes_to_job
        is_survived = reaches_job and arrived.command_ignores_it
        is_handled = arrived.command_handles_it or is_survived
        if not is_handled and (arrived.command_ignores_it or not reaches_job):
            self._do.pass_on(signal.SIGTERM, arrived.sender)
            return
        if arrived.number != signal.SIGTERM:
            half_s = self._grace_s / 2
            self._terminate_at = now + (half_s if is_handled else min(half_s, _DEATH_WITHIN_S))
        if can_be_withdrawn:
            self._look_at = now + _FIRST_LOOK_S
        self._pass_on_as_itself(arrived)

    def _second(self, arrived: Arrived, now: float) -> None:
        if self._look_at is None or not _is_ctrl_c(arrived):
            self._kill("second interrupt")
            return
        self._kill_at = min(self._kill_at, now + _PROMPT_COMES_BACK_S)
        self._kill_why = "second interrupt"
        self._message_at = None

    def _on_time(self, now: float) -> None:
        if now >= self._kill_at:
            self._kill(self._kill_why)
        elif self._terminate_at is not None and now >= self._terminate_at:
            self._terminate_at = self._look_at = None
            self._do.pass_on(signal.SIGTERM)
        elif self._message_at is not None and now >= self._message_at:
            self._message_at = None
            self._do.say_waiting(
                self._kill_at - now, or_prompts=self._look_at is not None, is_key=self._is_key
            )

    def _withdraw(self) -> None:
        self._state = _State.RUNNING
        self._look_at = self._terminate_at = self._message_at = None
        self._do.withdraw()

    def _kill(self, reason: str) -> None:
        self._state = _State.KILLING
        self._do.kill_tree(reason)

    def _pass_on_as_itself(self, arrived: Arrived) -> None:
        """Pass the signal on as it is; a hang-up with a SIGCONT, for stopped processes."""
        if not arrived.reached_command:
            self._do.pass_on(arrived.number, arrived.sender)
            if arrived.is_hangup:
                self._do.pass_on(signal.SIGCONT, arrived.sender)

    def _is_echo(self, arrived: Arrived, now: float) -> bool:
        if self._copies.has_copy(arrived.number, arrived.sender_pid, now):
            return True
        if self._last is None or arrived.from_terminal or not _interrupts(arrived):
            return False  # a program that sends SIGUSR1 twice means two
        if self._is_for_command(arrived):
            return False  # without sigwrap it would get each as well
        last, at = self._last
        return (
            last.number == arrived.number
            and not last.from_terminal
            and 0 not in (last.sender_pid, arrived.sender_pid)  # 0: outside the container
            and last.sender_pid in (arrived.sender_pid, self._copies.bootloader_pid)
            and now - at <= _ECHO_WINDOW_S
        )


def _interrupts(arrived: Arrived) -> bool:
    """Return whether the signal interrupts the run. A SIGHUP without a hang-up asks a command that
    survives it to read its configuration."""
    if arrived.number == signal.SIGHUP and arrived.command_outlives_it:
        return arrived.is_hangup
    return arrived.number in INTERRUPTS


def _is_ctrl_c(arrived: Arrived) -> bool:
    """Return whether it is the terminal's interrupt key, and the command got it as well."""
    return arrived.reached_command and arrived.number == signal.SIGINT
