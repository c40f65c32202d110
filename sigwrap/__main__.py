"""Start the role that argv[0] names."""

from __future__ import annotations

# These two come first: one handles an early interrupt, the other speeds up all later imports.
from sigwrap.early import HINT, claim_supervisor_memory  # isort: skip
from sigwrap.imports import isolate  # isort: skip
import gc
import os
import sys
from collections.abc import Callable

from sigwrap.bare import NoReturn
from sigwrap.errors import REFUSED, SigwrapError

before_exit: Callable[[], object] = int  # set by the one-file binary

_START_MAKES_NO_GARBAGE = 50_000
# Any other name starts sigwrap itself.
_OTHERS = ("sigwrap-forward", "sigwrap-stub", "sigwrap-shell", "sigwrap-joined")


def main() -> NoReturn:
    gc.set_threshold(_START_MAKES_NO_GARBAGE)
    name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
    if name == "-sigwrap-shell":  # as login(1) calls a shell
        name, words = name[1:], ["-l", *words]
    if words[:1] == ["--as"] and len(words) > 1:
        name, words = f"sigwrap-{words[1]}", words[2:]
    program = name if name in _OTHERS else "sigwrap"
    try:
        isolate()
        status = _role(program)(words)
    except SigwrapError as failure:
        _note(program, *failure.lines)
        status = failure.status
    except OSError as failure:  # a limit of the machine: processes, descriptors, memory
        _note(program, f"a system call failed: {failure}")
        status = REFUSED
    except (ImportError, MemoryError, SystemError) as failure:
        hint = "" if isinstance(failure, ModuleNotFoundError) else HINT
        _write(f"{program}: can't load: {str(failure) or 'no memory'}{hint}")
        status = REFUSED
    _leave(status)


def _leave(status: int) -> NoReturn:
    """Exit without the interpreter's shutdown, which takes 7 ms."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        pass  # the reader has closed it
    before_exit()
    os._exit(status)


def _write(line: str) -> None:
    """Print a line without an import: one has just failed."""
    shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)
    try:
        os.write(2, f"{shown}\n".encode())
    except OSError:
        pass


def _note(program: str, *lines: str) -> None:
    from sigwrap.cli.output import note

    note(*lines, program=program)


def _role(program: str) -> Callable[[list[str]], int]:
    match program:
        case "sigwrap-forward":
            from sigwrap.cli.forward import main as role
        case "sigwrap-stub":
            from sigwrap.cli.stub import main as role
        case "sigwrap-shell":
            claim_supervisor_memory()
            from sigwrap.cli.shell import main as role
        case "sigwrap-joined":
            claim_supervisor_memory()
            from sigwrap.cli.shell import start_session as role
        case _:
            claim_supervisor_memory()
            from sigwrap.cli.main import main as role
    return role


if __name__ == "__main__":
    main()
