"""The environment that a replacement gets, written to its stack at its exec stop.

It never passes through the caller's memory, which a vfork parent shares and a fork's child copies.
At the exec stop the new image's stack holds argc, the arguments, the environment and the auxiliary
vector. No other process has that memory, and nothing of the image has run. sigwrap writes a vector
with the new entries below it and moves the stack pointer. /proc/PID/environ keeps showing what the
kernel was given, so it does not show the new entries.

The new program inherits from its caller what outlives an exec. A seccomp filter of the caller could
kill it at any call, or make calls lie. A core dump would contain the values.
"""

from __future__ import annotations

import os
import resource
import struct
from collections.abc import Mapping, Sequence

from sigwrap.bare import re
from sigwrap.linux import procfs, ptrace
from sigwrap.linux.memory import Memory
from sigwrap.linux.registers import LAYOUT
from sigwrap.policy.judge.request import CommandRedirect, Via

_HOST_VALUE = re.compile(r"\$\{SIGWRAP_HOST:(\w+)\}")
_STACK_BYTES = 4 * 1024 * 1024  # Linux caps arguments at 6 MiB in all
_CHUNK = 4096
_ALIGNMENT = 16
# The kernel writes no core for 1, and starts no program for it. For 0 it starts one.
_NO_CORE = 1

Variables = tuple[tuple[bytes, bytes], ...]


class NoHostValue(Exception):
    """The policy names a variable that sigwrap's own environment lacks."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def variables_for(
    redirect: CommandRedirect,
    host: Mapping[bytes, bytes],
    given: Mapping[bytes, bytes],
    session: bytes,
) -> Variables:
    """Return the variables to add. Raises NoHostValue.

    `via: stub` takes none from the caller, whose LD_PRELOAD could read the values. It gets what the
    command was given of `host`, sigwrap's own environment.
    """
    base: dict[bytes, bytes] = {}
    if redirect.via is Via.STUB:
        base = dict(given)
        if session:
            base[b"SIGWRAP_SESSION"] = session
    added = {os.fsencode(name): _with_host_values(value, host) for name, value in redirect.env}
    return tuple({**base, **added}.items())


def takes_from_the_host(redirect: CommandRedirect) -> bool:
    """Return whether a variable has a value that the caller must not get."""
    return any(_HOST_VALUE.search(value) for _, value in redirect.env)


def _with_host_values(text: str, host: Mapping[bytes, bytes]) -> bytes:
    def value_of(found: re.Match[str]) -> str:
        value = host.get(os.fsencode(found[1]))
        if value is None:
            raise NoHostValue(found[1])
        return os.fsdecode(value)

    return os.fsencode(_HOST_VALUE.sub(value_of, text))


def objection_to(tid: int) -> str:
    """Return why a program that this thread execs must not get a value of sigwrap's, or ""."""
    theirs, ours = procfs.filters(tid), procfs.filters("self")
    if theirs is None or ours is None:
        return "cannot read which seccomp filters the caller has"
    if theirs > ours + 1:  # the session's
        return "the caller installed a seccomp filter of its own"
    return ""


def keep_from_core(pid: int) -> str:
    """Forbid core dumps; return why that fails, or ""."""
    try:
        _soft, hard = resource.prlimit(pid, resource.RLIMIT_CORE)
        if hard != 0:  # raising it is for root
            resource.prlimit(pid, resource.RLIMIT_CORE, (_NO_CORE, _NO_CORE))
    except OSError as refusal:
        return f"cannot keep it from dumping core: {refusal.strerror}"
    return ""


def add_to_new_image(pid: int, variables: Variables) -> None:
    """Add them at the exec stop. Raises OSError, Unreadable or KernelError."""
    registers = ptrace.registers(pid)
    word_size = 4 if LAYOUT.is_narrow(registers) else 8
    stack_at = registers[LAYOUT.stack]
    names = {name for name, _ in variables}
    with Memory(pid, may_wait=True) as memory:  # all of it is the new image's own
        words = _vector(pid, stack_at, word_size)
        environment_at = words[0] + 2
        end = words.index(0, environment_at)
        kept = [
            pointer
            for pointer in words[environment_at:end]
            if memory.string(pointer)[0].partition(b"=")[0] not in names
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


def _vector(pid: int, stack_at: int, word_size: int) -> Sequence[int]:
    """Return argc, arguments, NULL, environment, NULL, auxiliary vector with its AT_NULL."""
    data = b""
    while len(data) < _STACK_BYTES:
        more = ptrace.read_memory(pid, stack_at + len(data), _CHUNK)
        data += more
        words = memoryview(data[: len(data) - len(data) % word_size]).cast(
            "Q" if word_size == 8 else "I"
        )
        end = _end_of_vector(words.tolist())
        if end:
            return words[:end].tolist()
        if not more:
            break
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
