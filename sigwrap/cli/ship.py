"""sigwrap ship: put sessions where engines read them, or send them to a collector."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from functools import partial
from typing import Annotated

import typer

from sigwrap.cli.control import refuse_inside
from sigwrap.cli.group import App
from sigwrap.cli.options import StoreOption, existing_store
from sigwrap.cli.output import note
from sigwrap.cli.several import Several
from sigwrap.cli.showing import show_lines
from sigwrap.errors import ObjectsError, SessionError, StoreError, UsageError
from sigwrap.events import HOOK_LOG, counted
from sigwrap.fleet.objects import TIMEOUT_S, objects_at
from sigwrap.log.catalog import held, is_path, session_ids
from sigwrap.log.folder import SESSIONS_FOLDER, database_path
from sigwrap.log.reader import Session
from sigwrap.text import printable, shell_words, span_s

app = App()
_COLLECTOR = ("otlp:", "otlp+")
_LONGEST_TIMEOUT_S = 86_400.0


@app.command()
def ship(
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="URL",
            help="s3://BUCKET/PREFIX, file:///DIR, or otlp+https://HOST for a collector",
        ),
    ],
    sessions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SESSION…]",
            help="Session ids, their unique starts or ends, or session names "
            "[default: the latest session]",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Ship every session in the store")] = False,
    timeout: Annotated[
        str,
        typer.Option(
            "--timeout",
            metavar="TIME",
            help="Give up on an object, or on a session for a collector, after this time",
        ),
    ] = f"{TIMEOUT_S:.0f}s",
    credential_fd: Annotated[
        int | None,
        typer.Option(
            "--credential-fd",
            metavar="N",
            help="Read the credential from this descriptor, as JSON of an AWS credential_process "
            "[default: $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY and $AWS_SESSION_TOKEN]",
        ),
    ] = None,
    store: StoreOption = None,
) -> int:
    """Put sessions that have ended into a folder or a bucket.

    Or send them to a collector of OpenTelemetry. What is there already is not sent again. The next
    call goes on where this one was ended.
    """
    refuse_inside("processes in a session can't ship sessions")
    try:
        timeout_s = min(span_s(timeout, or_seconds=True), _LONGEST_TIMEOUT_S)
    except ValueError as error:
        raise UsageError(f"--timeout {timeout}: {error}") from error
    if timeout_s <= 0:
        raise UsageError("--timeout: no time to ship in", f"such as --timeout {TIMEOUT_S:.0f}s")
    folder = existing_store(store)
    chosen = _chosen(folder, sessions or [], every)
    environment = dict(os.environ)
    from sigwrap.fleet import shipping

    shipped = events = 0
    with ExitStack() as stack:
        files = stack.enter_context(held(folder, SESSIONS_FOLDER))
        if to.startswith(_COLLECTOR):
            if credential_fd is not None:
                raise UsageError(
                    "--credential-fd is for buckets", "set $OTEL_EXPORTER_OTLP_HEADERS"
                )
            name = to
            deliver = partial(shipping.send, url=to, environment=environment, timeout_s=timeout_s)
        else:
            objects = objects_at(to, environment, timeout_s=timeout_s, credential_fd=credential_fd)
            stack.enter_context(closing(objects))
            name = objects.name
            deliver = partial(shipping.ship, objects=objects)
        for session in chosen:
            if session.running and not session.id.startswith(HOOK_LOG):
                note(f"skipped {printable(session.id)}: it is running")
                continue
            try:
                done = deliver(session, files)
            except StoreError as error:
                note(f"skipped {printable(session.id)}: {error}")
                continue
            except ObjectsError as error:
                note(*error.lines)
                break
            note(*done.notes)
            shipped += done.is_whole
            events += done.events
    left = len(chosen) - shipped
    rest = f"; {counted(left, 'session')} not shipped" if left else ""
    now = f"shipped {counted(shipped, 'session')}, {events:,} events, to {name}{rest}"
    show_lines([printable(now)])
    return 1 if left else 0


def _chosen(store: str, selectors: list[str], every: bool) -> list[Session]:
    for each in filter(is_path, selectors):
        raise UsageError(f"{shell_words([each])} is a file", "give the session's id or name")
    if not every or selectors:
        return Several(store, selectors, every).sessions
    found = [Session(each, database_path(store, each)) for each in session_ids(store)]
    if not found:
        raise SessionError(f"there are no sessions in {store}", "choose another with --store")
    return found
