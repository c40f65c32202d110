"""Put another command into a caller's own call.

The supervisor answers the call with ERESTARTNOINTR, and the caller stops on its way out, before any
signal handler. There the supervisor makes the kernel restart the call as mmap(2), which provides
new memory for the path and arguments. Then it sets the registers for an exec of these, one
instruction back. The exec comes as a new request with the new pointers.

The space below the stack pointer would be unsafe. A vfork child shares its parent's memory, and
this space need not be stack: a Go program calls from a goroutine, whose small stack lies between
heap objects. The price of new memory: a parent that waits in vfork keeps the pages. They contain
only the replacing command line. sigwrap writes to no other memory of the caller, so read-only
arguments do not matter.

If a signal arrives, sigwrap restores the call, which comes again after the signal. Anything else
that is unexpected makes the exec fail with EACCES.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
from collections.abc import Mapping, Sequence

from sigwrap.bare import Enum, re, signal
from sigwrap.calls import EXECS, I386, number_of
from sigwrap.kernel import procfs, ptrace
from sigwrap.kernel.memory import Memory
from sigwrap.kernel.ptrace import LAYOUT, Registers
from sigwrap.kernel.seccomp import Notification
from sigwrap.machine import NUMBERS
from sigwrap.policy.judge.request import CommandRedirect, Via

_PROTECTION = mmap.PROT_READ | mmap.PROT_WRITE
_MAP_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_ALL_BITS = 0xFFFFFFFFFFFFFFFF


_MAP_OF_I386 = 192  # mmap2
_AT_EMPTY_PATH = 0x1000


class _Step(Enum):
    STOPPING = "stopping"
    CALLING_MAP = "calling mmap"
    IN_MAP = "in mmap"
    STAGED = "staged"  # the new exec is pending
    LEAVING = "leaving"  # the exec was answered; at any stop now, it has failed


class Redirection:
    """A state machine: each stop of the caller leads to its next move."""

    __slots__ = (
        "_address",
        "_argv",
        "_descriptor",
        "_environment_at",
        "_path",
        "_request",
        "_saved",
        "_step",
        "_tid",
        "_word_size",
        "_written",
        "error",
    )

    def __init__(
        self,
        notification: Notification,
        path: bytes,
        argv: Sequence[bytes],
        environment_at: int,
        descriptor: int = -1,
    ) -> None:
        """Prepare a redirection. `environment_at`: where the caller has the environment; 0 is an
        empty one. `descriptor` is the caller's, of the file to execute; `path` is then empty."""
        self._descriptor = descriptor
        self._tid = notification.tid
        self._request = notification
        self._word_size = 4 if notification.arch == I386 else 8
        self._path, self._argv, self._environment_at = path, tuple(argv), environment_at
        self._step = _Step.STOPPING
        self._saved: Registers = {}
        self._address = 0
        self._written = b""
        self.error = 0  # why it failed; the caller gets EACCES

    def on_stop(self, wait_status: int) -> bool:
        """Return whether the caller was released. Raises KernelError if it was killed."""
        match self._step:
            case _Step.STOPPING:
                return self._stopped(wait_status)
            case _Step.CALLING_MAP:
                return self._called(wait_status)
            case _Step.IN_MAP:
                return self._mapped(wait_status)
            case _Step.STAGED:
                return self._put_back(wait_status, restarts=False)
            case _Step.LEAVING:
                return self._give_up(wait_status)

    def is_intact(self, notification: Notification) -> bool:
        """Return whether the next notification is the staged exec. Call this once."""
        staged = self._step is _Step.STAGED
        self._step = _Step.LEAVING
        if not staged or notification.number != self._exec_number:
            return False
        wanted = self._arguments()
        given = (
            *(notification.argument0, notification.argument1, notification.argument2),
            *(notification.argument3, notification.argument4),
        )
        if given[: len(wanted)] != wanted:
            return False
        try:
            with Memory(self._tid, may_wait=True) as memory:  # only memory that sigwrap has mapped
                return memory.block(self._address, len(self._written)) == self._written
        except OSError:
            return False

    def _stopped(self, wait_status: int) -> bool:
        registers = ptrace.registers(self._tid)
        interrupted = wait_status >> 16 == ptrace.EVENT_STOP
        if not LAYOUT.comes_again(registers, self._request.instruction_pointer):
            self._saved = registers
            return self._give_up(wait_status)
        if not interrupted or os.WSTOPSIG(wait_status) != signal.SIGTRAP:
            return self._detach(wait_status)  # a signal or a group stop; then the call comes again
        self._saved = LAYOUT.again(registers)
        length = len(self._block(0)[0])
        arguments = (0, length, _PROTECTION, _MAP_FLAGS, -1, 0)
        number = _MAP_OF_I386 if self._word_size == 4 else NUMBERS["mmap"]
        arch = self._request.arch
        mapping = LAYOUT.another_again(registers, arch, number, arguments)
        ptrace.set_registers(self._tid, mapping)
        ptrace.resume_to_syscall(self._tid)
        self._step = _Step.CALLING_MAP
        return False

    def _called(self, wait_status: int) -> bool:
        if not _is_syscall_stop(wait_status):
            return self._put_back(wait_status, restarts=True)
        ptrace.resume_to_syscall(self._tid)
        self._step = _Step.IN_MAP
        return False

    def _mapped(self, wait_status: int) -> bool:
        address = ptrace.registers(self._tid)[LAYOUT.result]
        if not _is_syscall_stop(wait_status) or address >= _ALL_BITS - 4095:
            return self._give_up(wait_status)
        if self._word_size == 4:
            address &= 0xFFFFFFFF
        self._address = address
        self._written = self._block(address)[0]
        try:
            ptrace.write_memory(self._tid, address, self._written)
        except OSError:
            return self._give_up(wait_status)
        given = (self._saved, self._request.arch, self._exec_number, self._arguments())
        ptrace.set_registers(self._tid, LAYOUT.anew(*given))
        ptrace.resume(self._tid)
        self._step = _Step.STAGED
        return False

    @property
    def _exec_number(self) -> int:
        return number_of("execve" if self._descriptor < 0 else "execveat", self._request.arch)

    def _arguments(self) -> tuple[int, ...]:
        pointers = self._block(self._address)[1], self._address, self._environment_at
        if self._descriptor < 0:
            return pointers
        return (self._descriptor, *pointers, _AT_EMPTY_PATH)

    def _block(self, address: int) -> tuple[bytes, int]:
        """Return what to write to this address, and the address of the path in it.

        The pointers to the arguments come first, for alignment, then the strings.
        """
        at = address + (len(self._argv) + 1) * self._word_size
        pointers = []
        for word in self._argv:
            pointers.append(at)
            at += len(word) + 1
        pointers.append(0)
        kind = "Q" if self._word_size == 8 else "I"
        text = b"".join(word + b"\0" for word in (*self._argv, self._path))
        return struct.pack(f"<{len(pointers)}{kind}", *pointers) + text, at

    def _put_back(self, wait_status: int, *, restarts: bool) -> bool:
        """Restore the call. `restarts`: the kernel will still restart it by itself."""
        registers = self._saved
        if not restarts:
            registers = LAYOUT.anew(registers, self._request.arch, self._request.number)
        ptrace.set_registers(self._tid, registers)
        return self._detach(wait_status)

    def _give_up(self, wait_status: int) -> bool:
        """Make the exec fail."""
        found = ptrace.registers(self._tid)
        self.error = errno.EACCES
        if self._step is _Step.LEAVING:
            self.error = ptrace.error_in(found, EXECS) or errno.EACCES
        saved = self._saved or found
        after = self._request.instruction_pointer
        ptrace.set_registers(self._tid, LAYOUT.failed(saved, errno.EACCES, after))
        return self._detach(wait_status)

    def _detach(self, wait_status: int) -> bool:
        is_signal = wait_status >> 16 == 0 and not _is_syscall_stop(wait_status)
        ptrace.detach(self._tid, os.WSTOPSIG(wait_status) if is_signal else 0)
        return True


def _is_syscall_stop(wait_status: int) -> bool:
    return wait_status >> 16 == 0 and os.WSTOPSIG(wait_status) == ptrace.SYSCALL_STOP


# The environment that a replacement gets, written to its stack at its exec stop.

_HOST_VALUE = re.compile(r"\$\{SIGWRAP_HOST:(\w+)\}")
# Lists of directories with programs and code. The caller chooses what a relative one means.
_SEARCHED = {b"PATH", b"LD_LIBRARY_PATH", b"PYTHONPATH", b"PERL5LIB", b"RUBYLIB", b"NODE_PATH"}
_STACK_BYTES = 4 * 1024 * 1024  # Linux caps arguments at 6 MiB in all
_CHUNK = 4096
_ALIGNMENT = 16

Variables = tuple[tuple[bytes, bytes], ...]


def variables_for(
    redirect: CommandRedirect,
    host: Mapping[bytes, bytes],
    given: Mapping[bytes, bytes],
    session: bytes,
) -> Variables:
    """Return the variables to add. Raises KeyError with a name that `host` lacks.

    `via: stub` takes none from the caller, whose LD_PRELOAD could read the values. It gets what the
    command was given of `host`, sigwrap's own environment.
    """
    found: dict[bytes, bytes] = {}
    if redirect.via is Via.STUB:
        found = dict(given)
        if session:
            found[b"SIGWRAP_SESSION"] = session
    for name, value in redirect.env:
        found[os.fsencode(name)] = _with_host_values(value, host)
    if redirect.has_secret:
        for searched in found.keys() & _SEARCHED:
            folders = [each for each in found[searched].split(b":") if each.startswith(b"/")]
            if folders:
                found[searched] = b":".join(folders)
            else:
                del found[searched]  # empty, it would mean the current directory
    return tuple(found.items())


def _with_host_values(text: str, host: Mapping[bytes, bytes]) -> bytes:
    return os.fsencode(
        _HOST_VALUE.sub(lambda found: os.fsdecode(host[os.fsencode(found[1])]), text)
    )


def objection_to(tid: int) -> str:
    """Return why a program that this thread execs must not get a value of sigwrap's, or "".

    In a namespace of its own, the session owns every address, and may trace the program.
    """
    for kind, name in (("net", "network"), ("user", "user")):
        if procfs.linked(f"/proc/{tid}/ns/{kind}") != procfs.linked(f"/proc/self/ns/{kind}"):
            return f"the caller is in another {name} namespace"
    return objection_to_filters(tid)


def objection_to_filters(tid: int) -> str:
    theirs, ours = procfs.filters(tid), procfs.filters("self")
    if theirs is None or ours is None:
        return "cannot read which seccomp filters the caller has"
    if theirs > ours + 1:  # the session's
        return "the caller installed a seccomp filter of its own"
    return ""


def add_to_new_image(pid: int, variables: Variables, *, keeps_others: bool) -> None:
    """Add them at the exec stop. Raises OSError or KernelError.

    `keeps_others`: the image also keeps the variables that its exec has passed.
    """
    registers = ptrace.registers(pid)
    word_size = 4 if LAYOUT.is_narrow(registers) else 8
    stack_at = registers[LAYOUT.stack]
    names = {name for name, _ in variables}
    with Memory(pid, may_wait=True) as memory:  # all of it is the new image's own
        words = _vector(memory, stack_at, word_size)
        environment_at = words[0] + 2
        end = words.index(0, environment_at)
        kept = [
            pointer
            for pointer in words[environment_at:end]
            if keeps_others and memory.string(pointer)[0].partition(b"=")[0] not in names
        ]
    text = b"".join(name + b"=" + value + b"\0" for name, value in variables)
    text_at = (stack_at - len(text)) & -_ALIGNMENT
    added = []
    position = text_at
    for name, value in variables:
        added.append(position)
        position += len(name) + len(value) + 2
    vector = [*words[:environment_at], *kept, *added, *words[end:]]
    data = struct.pack(f"<{len(vector)}{'Q' if word_size == 8 else 'I'}", *vector)
    vector_at = (text_at - len(data)) & -_ALIGNMENT
    ptrace.write_memory(pid, text_at, text)
    ptrace.write_memory(pid, vector_at, data)
    ptrace.set_registers(pid, {**registers, LAYOUT.stack: vector_at})


def _vector(memory: Memory, stack_at: int, word_size: int) -> Sequence[int]:
    """Return argc, arguments, NULL, environment, NULL, auxiliary vector with its AT_NULL."""
    data = b""
    while len(data) < _STACK_BYTES:
        data += memory.read(stack_at + len(data), _CHUNK)
        words = memoryview(data[: len(data) - len(data) % word_size]).cast(
            "Q" if word_size == 8 else "I"
        )
        if end := _end_of_vector(words.tolist()):
            return words[:end].tolist()
    raise OSError("the new image's stack has no end")


def _end_of_vector(words: Sequence[int]) -> int:
    """Return the length of the vector, or 0 if its end is not among the words."""
    try:
        position = words.index(0, words[0] + 2) + 1
    except (IndexError, ValueError):
        return 0
    while position + 1 < len(words):
        if words[position] == 0:  # AT_NULL, and its value
            return position + 2
        position += 2
    return 0
