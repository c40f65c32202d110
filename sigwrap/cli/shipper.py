"""The process that --ship starts: it ships the session while it runs."""

from __future__ import annotations

import os
from contextlib import closing, suppress

from sigwrap.bare import TYPE_CHECKING, signal, socket
from sigwrap.cli.control import refuse_inside
from sigwrap.errors import InternalError, ObjectsError, SessionError, SigwrapError, UsageError
from sigwrap.front.shipper import FAILED, LEFT, READY, SHIPPED, Shipper
from sigwrap.kernel import libc, memory
from sigwrap.kernel import process as linux_process
from sigwrap.kernel.descriptors import inherited, release_inherited
from sigwrap.log.codec import key_from_environment
from sigwrap.log.folder import SESSIONS_FOLDER, database_path, default_store
from sigwrap.session.settings import RunSettings
from sigwrap.start import own_code

if TYPE_CHECKING:
    from sigwrap.fleet.live import Live

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 10.0
_LONGEST_TEXT = 1_000
_CHANGED = "another program changed the log, so check it first (sigwrap verify)"


def start_shipper(settings: RunSettings, variables: dict[bytes, bytes]) -> Shipper:
    """Start it, and wait until it has its credential. SigwrapError if it can't ship."""
    refuse_inside("processes in a session can't ship sessions")
    fd = settings.ship_credential_fd
    if settings.ship.lower().startswith("s3:") and not fd:
        raise UsageError(
            "--ship to a bucket needs --ship-credential-fd N",
            "the command could read one in the environment: 3< <(print-credential)",
        )
    if fd and fd not in inherited():
        raise UsageError(f"--ship-credential-fd {fd}: not open", "give an open descriptor: 3<FILE")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = linux_process.fork()
    if pid == 0:
        try:
            ours.close()
            _run(settings, variables, theirs)
        finally:
            os._exit(0)
    theirs.close()
    if fd:
        os.close(fd)
    shipper = Shipper(settings, pid, ours)
    if problem := shipper.await_ready():
        os.waitpid(pid, 0)
        raise SessionError(problem)
    return shipper


def _run(settings: RunSettings, variables: dict[bytes, bytes], front: socket.socket) -> None:
    libc.set_parent_death_signal(signal.SIGKILL)  # while it reads the credential
    libc.set_dumpable(False)
    os.setsid()
    if settings.ship_credential_fd:
        os.set_inheritable(settings.ship_credential_fd, False)
    release_inherited()
    os.dup2(0, 2, inheritable=False)
    try:
        said = _ship(settings, variables, front)
    except Exception as error:
        said = str(error if isinstance(error, SigwrapError) else InternalError.of(error))
    _say(front, LEFT if said else SHIPPED, said)


def _say(front: socket.socket, kind: bytes, text: str = "") -> None:
    with suppress(OSError):  # the front process was killed
        front.send(kind + text[:_LONGEST_TEXT].encode("utf-8", "replace"))


def _ship(settings: RunSettings, variables: dict[bytes, bytes], front: socket.socket) -> str:
    """Return why not everything was shipped, or an empty text."""
    from sigwrap.fleet.live import Live
    from sigwrap.fleet.objects import objects_at
    from sigwrap.fleet.shipping import ship
    from sigwrap.log.catalog import held
    from sigwrap.log.chain import ChainWalk
    from sigwrap.log.reader import Session

    environment = {os.fsdecode(name): os.fsdecode(value) for name, value in variables.items()}
    fd = settings.ship_credential_fd or None
    objects = objects_at(
        settings.ship, environment, timeout_s=settings.ship_timeout_s, credential_fd=fd
    )
    memory.forget(tuple(os.environb))  # root in the session can read them
    "name".encode("idna")  # imports what looks up a host
    own_code.import_nothing_more()
    libc.set_parent_death_signal(0)
    _say(front, READY)
    store = settings.store or default_store(environment)
    session = Session(settings.session_id, database_path(store, settings.session_id))
    key = key_from_environment(variables)
    with closing(objects), closing(Live(session, objects, key)) as live:
        head = _follow(live, front)
        if not (head or any(map(os.path.exists, session.files))):
            return ""
        last = session.last()
        if head and (last is None or last.hash != head):
            return _CHANGED
        try:
            with held(store, SESSIONS_FOLDER) as files:
                done = ship(session, files, objects, live.cursor, ChainWalk(session.id, key))
        except ObjectsError as error:  # its hint is for sigwrap ship
            return error.message
    if head and done.head != head:
        return _CHANGED
    return "" if done.is_whole else "; ".join(done.notes)


def _follow(live: Live, front: socket.socket) -> str:
    """Deliver what the session records until the run is over. Return the head of its log, as the
    supervisor knows it; empty if it was killed."""
    pause_s, has_failed = _FIRST_PAUSE_S, False
    while (head := _head(front, pause_s)) is None:
        if (problem := live.deliver()) and not has_failed:
            has_failed = True
            _say(front, FAILED, problem)
        pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
    return head


def _head(front: socket.socket, pause_s: float) -> str | None:
    """Wait. Return the head if the run is over: only the front process, or its end, says so."""
    front.settimeout(pause_s)
    try:
        return front.recv(_LONGEST_TEXT).decode()
    except TimeoutError:
        return None
    except OSError:  # it was killed, and did not read what we said
        return ""
    finally:
        front.settimeout(None)
