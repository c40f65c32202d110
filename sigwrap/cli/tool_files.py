"""The files that a command name leads to along PATH, for `sigwrap policy pin` and `explain`."""

from __future__ import annotations

import os
import stat

from sigwrap.bare import TYPE_CHECKING
from sigwrap.errors import SigwrapError, UsageError
from sigwrap.exec.content import MAX_HASHED_BYTES
from sigwrap.exec.host import SystemCommands, in_a_system_folder
from sigwrap.kernel.paths import Caller
from sigwrap.policy.judge.match import UNTOLD
from sigwrap.policy.judge.request import CommandRequest, Program
from sigwrap.policy.judge.wrappers import keeps_search_path
from sigwrap.start.command import find_program
from sigwrap.text import printable

if TYPE_CHECKING:
    from sigwrap.policy.tools.pin import Pin


def pinned(tool: str) -> Pin:
    """Return the file that an exec would load, links resolved; UsageError if it can't be pinned."""
    import hashlib  # a hook needs neither

    from sigwrap.policy.tools.pin import Pin

    path = os.path.realpath(_found(tool))
    name = tool.rstrip("/").rpartition("/")[2]
    if not (name.isprintable() and path.isprintable()):
        raise _refused(tool, "its path has unprintable characters", "rename it")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(fd, "rb", buffering=0) as file:
            state = os.fstat(fd)
            if not stat.S_ISREG(state.st_mode):
                raise _refused(tool, "not a regular file")
            if state.st_size > MAX_HASHED_BYTES:
                raise _refused(tool, "larger than 1 GiB, the limit for digests")
            return Pin(name, path, hashlib.file_digest(file, "sha256").hexdigest())
    except OSError as failure:
        why = f"{path} can't be read: {failure.strerror}"
        raise _refused(tool, why, "a run must be able to read it too") from failure


def not_found(request: CommandRequest) -> list[str]:
    """Return the names without a slash that are not on the current PATH."""
    missing = []
    for program in request.programs:
        if not program.counts_by_name and "/" not in program.argv[0]:
            try:
                find_program(program.argv[0], dict(os.environb))
            except SigwrapError:
                missing.append(program.argv[0])
        if not keeps_search_path(program.name, program.argv):
            break
    return list(dict.fromkeys(missing))


def with_shadows(request: CommandRequest, commands: SystemCommands) -> CommandRequest:
    """Add what shadows a system command on the current PATH."""
    programs = list(request.programs)
    for position, program in enumerate(programs):
        programs[position] = _looked_up(program, commands)
        if not keeps_search_path(program.name, program.argv):
            break
    return request._replace(programs=tuple(programs))


def _looked_up(program: Program, commands: SystemCommands) -> Program:
    name = program.argv[0]
    if program.counts_by_name or "/" in name or UNTOLD in name:
        return program
    try:
        called = find_program(name, dict(os.environb))
        caller = Caller(os.getpid(), os.getpid(), may_wait=True)
        fd = caller.open(called)
    except (SigwrapError, OSError):
        return program  # explain it as if it were installed
    try:
        state = caller.state_of(fd)
        shadows = commands.shadowed(caller, fd, state, called, elsewhere=False)
    finally:
        os.close(fd)
    found = os.fsdecode(called)
    if in_a_system_folder(found):
        return program
    path = os.path.realpath(found)
    found = found if shadows else ""
    program = program._replace(path=path, shadows=shadows, found=found)
    if path.endswith(f"/{name}"):
        return program
    return program._replace(system_file=False)  # a link with another name: it may do anything


def _found(tool: str) -> str:
    try:
        return os.fsdecode(find_program(tool, dict(os.environb)))
    except SigwrapError as missing:  # its status is that of a run whose command is missing
        raise UsageError(printable(missing.message)) from missing


def _refused(tool: str, why: str, hint: str = "") -> UsageError:
    return UsageError(f"{printable(tool)} can't be pinned: {printable(why)}", hint)
