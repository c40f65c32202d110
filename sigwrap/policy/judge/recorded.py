"""Read a request back from its event, to decide it again.

exec/facts.py writes the facts of a decision into the event. A log from elsewhere may hold
anything in any field.
"""

from __future__ import annotations

from collections.abc import Sequence
from posixpath import join, normpath

from sigwrap.bare import Any
from sigwrap.events import Payload, number, text, texts
from sigwrap.policy.judge.network import UNIX, Direction, Endpoint, Protocol, packed_address
from sigwrap.policy.judge.request import (
    CommandRequest,
    Program,
    SignalRequest,
    TargetType,
    with_implied,
)
from sigwrap.policy.judge.rules import Crowd

# Version of the engine and of the facts in events. It changes when the engine decides differently
# or the events hold other facts.
JUDGEMENT = 1
SEARCHED_FOLDER = "/usr/bin/"

_CUT_MARK = "[...]"  # log/codec.py
_TARGET_TYPES = {each.value: each for each in TargetType}
_PROTOCOLS = {each.value: each for each in Protocol}


def command_request(payload: Payload) -> CommandRequest:
    """Read an exec; arguments that were cut off are missing."""
    listed = payload.get("programs")
    recorded = (
        [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    )
    folder, is_cut = text(payload.get("cwd")), "cut" in payload
    if recorded:
        programs = tuple(_program(each, folder, is_cut=is_cut) for each in recorded)
    else:
        called = {"path": payload.get("path"), "argv": payload.get("argv")}
        main = _program(called, folder, is_cut=is_cut)
        shadows = text(payload.get("shadows"))
        programs = (
            main._replace(
                elsewhere=payload.get("elsewhere") is True,
                shadows=shadows,
                found=main.path if shadows else "",
            ),
        )
    return CommandRequest(
        programs=programs,
        depth=number(payload.get("depth")),
        truncated=bool(payload.get("truncated")),
        traced=bool(payload.get("traced")),
        cwd=folder,
    )


def programs_here(payload: Payload, request: CommandRequest) -> int:
    """Return how many of the programs the exec itself runs."""
    here = number(payload.get("here"))
    return here if 0 < here < len(request.programs) else len(request.programs)


def crowd(payload: Payload) -> Crowd:
    return Crowd(number(payload.get("siblings")), number(payload.get("processes")))


def signal_request(payload: Payload) -> SignalRequest:
    words = texts(payload.get("target_types")) or [text(payload.get("target_type"))]
    return SignalRequest(
        # A redirected signal was asked for under its original number.
        signal=number(payload.get("original_signal")) or number(payload.get("signal")),
        target_types=with_implied(_TARGET_TYPES[each] for each in words if each in _TARGET_TYPES),
        target_command=text(payload.get("target_cmd")),
        target_pid=number(payload.get("target_pid")),
        handled=payload.get("target_handles") is True,
    )


def connection_request(payload: Payload) -> Endpoint:
    destination = text(payload.get("destination"))
    direction = Direction.BIND if payload.get("direction") == "bind" else Direction.CONNECT
    protocol = _PROTOCOLS.get(text(payload.get("protocol")), Protocol.OTHER)
    others, is_own = frozenset(texts(payload.get("names"))), payload.get("own") is True
    if protocol is Protocol.UNIX:
        name = destination.removeprefix(UNIX)
        socket = name if name.startswith(("/", "@")) else ""
        return Endpoint(direction, protocol, socket=socket, names=others, is_own=is_own)
    address = packed_address(text(payload.get("address"))) or b""
    host = destination.rpartition(":")[0].removeprefix("[").removesuffix("]")
    named = frozenset({host}) if host and packed_address(host) is None else frozenset[str]()
    port = number(payload.get("port"))
    return Endpoint(direction, protocol, address, port, names=named | others)


def program_named(path: str, argv: Sequence[str], folder: str = "/") -> Program:
    """Make a program without looking at files: a bare name is in /usr/bin."""
    name = path.rstrip("/").rpartition("/")[2] or "unknown"
    if "/" in path:
        # normpath keeps two leading slashes, which POSIX lets mean something. Linux doesn't.
        absolute = "/" + normpath(join(folder, path)).lstrip("/")
    else:
        absolute = SEARCHED_FOLDER + name
    return Program(path=absolute, name=name, argv=tuple(argv))


def _program(recorded: dict[str, Any], folder: str, *, is_cut: bool) -> Program:
    argv = tuple(texts(recorded.get("argv")))
    if is_cut and argv and argv[-1].endswith(_CUT_MARK):
        argv = argv[:-1]
    # A path that could not be read is known by argv[0] only.
    path = text(recorded.get("path")) or (argv[0] if argv else "")
    known = program_named(path, argv, folder or "/")
    system_file, digest = recorded.get("system_file"), recorded.get("sha256")
    return known._replace(
        path=path if path.startswith(".../") else known.path,  # it was too long to record
        name=text(recorded.get("name")) or known.name,
        sha256=(lambda: digest) if isinstance(digest, str) else None,
        elsewhere=recorded.get("elsewhere") is True,
        counts_by_name=recorded.get("counts_by_name") is True,
        system_file=system_file if isinstance(system_file, bool) else None,
        loads_code=recorded.get("loads_code") is True,
        shadows=text(recorded.get("shadows")),
        found=text(recorded.get("found")),
        missing=recorded.get("missing") is True,
    )
