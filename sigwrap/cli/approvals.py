"""approvals, approve, deny: the other end of the sessions' control sockets."""

from __future__ import annotations

import difflib
import json
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from sigwrap.cli.output import out
from sigwrap.cli.reading import JsonOption, StoreOption
from sigwrap.errors import SessionError, StoreError
from sigwrap.escape import printable
from sigwrap.linux.peer import peer_is_supervised
from sigwrap.report.times import span
from sigwrap.run.asking.control_socket import (
    PROTOCOL_VERSION,
    SOCKET_SUFFIX,
    Reply,
    Request,
    control_folder,
    socket_address,
)
from sigwrap.store.location import default_store

APPROVALS_SCHEMA = "sigwrap.approvals/1"

_PATIENCE_S = 10.0
_MAX_REPLY_BYTES = 16 << 20

_approvals = typer.Typer(
    invoke_without_command=True, no_args_is_help=False, help="Show what waits for an answer."
)

IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="As sigwrap approvals shows it.", show_default=False)
]


def register(app: typer.Typer) -> None:
    app.add_typer(_approvals, name="approvals")
    app.command()(approve)
    app.command()(deny)


@_approvals.callback()
def approvals(
    context: typer.Context, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Show what waits for an answer, in all running sessions of the store."""
    if context.invoked_subcommand is None:
        _show(_store(store), as_json)
    else:
        context.obj = (store, as_json)


@_approvals.command("list")
def list_approvals(
    context: typer.Context, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Show what waits for an answer (the same as: sigwrap approvals)."""
    outer_store, outer_as_json = context.obj
    _show(_store(store or outer_store), as_json or outer_as_json)


def approve(
    request_id: IdArgument,
    always: Annotated[
        bool, typer.Option("--always", help="And the same again, for this session.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Let a waiting exec or signal go on."""
    _answer(_store(store), {"do": "approve", "id": request_id, "always": always})


def deny(
    request_id: IdArgument,
    message: Annotated[
        str, typer.Option("--message", metavar="M", help="What the asker is told.")
    ] = "",
    store: StoreOption = None,
) -> None:
    """Refuse a waiting exec or signal."""
    _answer(_store(store), {"do": "deny", "id": request_id, "message": message})


def _show(store: str, as_json: bool) -> None:
    requests = []
    more = 0
    for session_id, connection in _sessions(store):
        reply = _speak(connection, {"do": "list"}, session_id)
        requests += [{**each, "session_id": session_id} for each in reply["requests"]]
        more += int(reply.get("more", 0))
    if as_json:
        document = {"schema": APPROVALS_SCHEMA, "requests": requests, "more": more}
        out(json.dumps(document, indent=2))
    elif not requests:
        out("nothing waits for an answer")
    else:
        for request in requests:
            out(_rendered(request))
        if more:
            out(f"and {more} more")


def _rendered(request: dict[str, Any]) -> str:
    def text(name: str) -> str:
        return printable(str(request.get(name, "")))

    action = "wants to run" if request.get("kind") == "exec" else "wants to send"
    left = span(int(float(request.get("expires_in_s", 0)) * 1e9))
    message = f": {text('message')}" if request.get("message") else ""
    return (
        f"{text('id')}  {text('process')} (pid {text('pid')}, depth {text('depth')}) "
        f"{action} {text('what')}\n"
        f"        rule {text('rule')}{message}; session {text('session_id')}; {left} left"
    )


def _answer(store: str, request: Request) -> None:
    wanted = request["id"]
    open_ids: list[str] = []
    late = ""
    for session_id, connection in _sessions(store):
        reply = _speak(connection, request, session_id, may_fail=("unknown-id", "late"))
        match reply.get("error"):
            case None:
                _tell(reply, session_id)
                return
            case "unknown-id":
                open_ids += map(str, reply.get("open", []))
            case _:
                late = str(reply.get("message"))
    if late:
        raise SessionError(printable(late))
    if not open_ids:
        raise SessionError(
            f"there is no request {wanted!r}, and nothing else waits in a running session of "
            f"{store}",
            "a session that is over takes no answers",
        )
    nearest = difflib.get_close_matches(wanted, open_ids, n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]}?" if nearest else f"there is {', '.join(open_ids[:5])}"
    raise SessionError(f"there is no request {wanted!r}", printable(hint))


def _tell(reply: Reply, session_id: str) -> None:
    settled = [str(each) for each in reply.get("settled", [])]
    others = f" (and {len(settled) - 1} more of the same)" if len(settled) > 1 else ""
    said = "approved" if reply.get("granted") else "denied"
    message = f": {reply['message']}" if reply.get("message") else ""
    out(printable(f"{settled[0]} {said}{others} in session {session_id}{message}"))
    out(f"  {printable(str(reply.get('what', '')))}")


def _speak(
    connection: socket.socket, request: Request, session_id: str, may_fail: tuple[str, ...] = ()
) -> Reply:
    reply = _exchange(connection, request, session_id)
    if reply.get("ok") is True or reply.get("error") in may_fail:
        return reply
    message = printable(str(reply.get("message", "refused")))
    if reply.get("error") == "inside":
        raise SessionError(
            message, "a supervised process approves nothing, neither of its own session nor others"
        )
    raise SessionError(f"session {session_id}: {message}")


def _exchange(connection: socket.socket, request: Request, session_id: str) -> Reply:
    received = b""
    try:
        try:
            connection.sendall(json.dumps({"v": PROTOCOL_VERSION, **request}).encode() + b"\n")
        except BrokenPipeError:
            pass  # it has hung up, but not without a word
        while not received.endswith(b"\n") and len(received) < _MAX_REPLY_BYTES:
            data = connection.recv(1 << 16)
            if not data:
                break
            received += data
        reply = json.loads(received)
    except TimeoutError as silence:
        raise SessionError(f"session {session_id} doesn't answer") from silence
    except (OSError, ValueError) as failure:
        raise SessionError(f"session {session_id} hung up: {failure}") from failure
    return reply if isinstance(reply, dict) else {}


def _sessions(store: str) -> Iterator[tuple[str, socket.socket]]:
    """Those that can be reached; a socket whose session is over is passed over."""
    folder = control_folder(store)
    try:
        folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"can't look into {folder}: {error.strerror}") from error
    try:
        for name in sorted(os.listdir(folder_fd)):
            if name.endswith(SOCKET_SUFFIX):
                session_id = name.removesuffix(SOCKET_SUFFIX)
                with _connected(folder_fd, session_id) as connection:
                    if connection is not None:
                        yield session_id, connection
    finally:
        os.close(folder_fd)


@contextmanager
def _connected(folder_fd: int, session_id: str) -> Iterator[socket.socket | None]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        # Not settimeout: a connect that doesn't block fails where others wait to be accepted.
        patience = struct.pack("@ll", int(_PATIENCE_S), 0)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, patience)
        try:
            connection.connect(socket_address(folder_fd, session_id))
        except (ConnectionRefusedError, FileNotFoundError):
            yield None
            return
        except OSError as error:
            raise SessionError(f"can't reach session {session_id}: {error.strerror}") from error
        connection.settimeout(_PATIENCE_S)
        if peer_is_supervised(connection):
            raise SessionError(
                f"what answers for session {session_id} may be a supervised process itself",
                "only a process outside of all sessions is believed",
            )
        yield connection


def _store(option: os.PathLike[str] | None) -> str:
    return default_store(os.environ) if option is None else os.fspath(option)
