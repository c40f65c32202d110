"""serve: a page on loopback to watch all sessions, and to answer and stop them."""

from __future__ import annotations

import os
import shutil
from typing import Annotated

import typer

from sigwrap.cli.control import refuse_inside
from sigwrap.cli.group import App
from sigwrap.cli.note_in_time import note_in_time
from sigwrap.cli.options import StoreOption, watched_store
from sigwrap.cli.output import note, out
from sigwrap.errors import SessionError, UsageError
from sigwrap.kernel import procfs
from sigwrap.start import onefile
from sigwrap.text import printable

app = App()


@app.command()
def serve(
    port: Annotated[
        int,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=65_535,
            help="Port on 127.0.0.1 [default: any free port]",
            show_default=False,
        ),
    ] = 0,
    socket_path: Annotated[
        str | None,
        typer.Option(
            "--socket",
            metavar="FILE",
            help="Listen on a Unix socket instead, for ssh -L 8000:FILE from another machine",
        ),
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in a browser")] = False,
    store: StoreOption = None,
) -> None:
    """Serve a web page to watch, approve and stop sessions.

    On this machine only. The printed address lets one browser in, once.
    """
    procfs.hold()
    procfs.require()
    refuse_inside("processes in a session can't serve the page")
    from sigwrap.watch.actions import carry_out
    from sigwrap.watch.notify import start_apart
    from sigwrap.watch.page.server import SocketFile, at_port
    from sigwrap.watch.page.server import serve as serve_page
    from sigwrap.watch.source import Source

    if socket_path is not None and (port or open_it):
        raise UsageError("--socket can't be combined with --port or --open")
    browser = _browser() if open_it else ""
    folder = watched_store(store)
    file = SocketFile(socket_path) if socket_path is not None else None
    listener = at_port(port) if file is None else file.end

    def ready(path: str) -> None:
        place = "localhost:8000" if file else f"127.0.0.1:{listener.getsockname()[1]}"
        out(f"http://{place}{path}")
        if file:
            host = f"{os.environ.get('USER') or 'you'}@{os.uname().nodename}"
            note(
                f"from another machine: ssh -N -L 8000:{file.path} {host}; then open the address "
                "there; it lets one browser in, once"
            )
        else:
            note("this address lets one browser in, once; Ctrl+C ends the page, not the sessions")
        if browser:
            try:
                start_apart([browser, f"http://{place}{path}"], {})
            except OSError as error:
                note(f"can't start {browser}: {error.strerror}")

    source = Source(folder)
    source.start()
    try:
        is_in_place = serve_page(
            listener,
            folder,
            source,
            lambda order: carry_out(folder, order),
            report_line=[*onefile.own_line(), "report", "--format", "html", "--store", folder],
            tell=note_in_time,
            ready=ready,
            is_in_place=lambda: file is None or file.is_in_place,
        )
    finally:
        source.close()
        (file or listener).close()
    if file is not None and not is_in_place:
        raise SessionError(
            f"another program removed or replaced {printable(file.path)}, so the page was stopped",
            "choose a directory that no session can write to",
        )


def _browser() -> str:
    for name in (os.environ.get("BROWSER", "").partition(":")[0], "xdg-open"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise UsageError(
        "--open: no browser: xdg-open is missing and $BROWSER is not set",
        "open the address yourself",
    )
