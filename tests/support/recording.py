"""A command that is recorded: `tool`, which a policy replaces through a stub."""

from __future__ import annotations

from sigwrap.events import Event, recorded_bytes
from tests.support.harness import Running, Sigwrap
from tests.support.policies import policy
from tests.support.programs import script
from tests.support.waiting import Reader, reader

RECORDED = """
  - {name: recorder, commands: [tool], decision: redirect,
     redirect_to: {command: %(folder)s/real-tool, append_args: true, via: stub, record: true,
                   env: {TOKEN: "${SIGWRAP_HOST:THE_TOKEN}"}}}
"""
TOKEN = "the-brokered-t0ken-value"


def prepared(subject: Sigwrap, text: str, *more: str) -> tuple[str, ...]:
    """sigwrap's options, for a `tool` that is replaced by the program `text`."""
    subject.env["THE_TOKEN"] = TOKEN
    script(subject.folder, "tool", "#!/bin/sh\necho original; : > original-ran\n")
    script(subject.folder, "real-tool", text)
    return ("-p", policy(subject.folder, RECORDED % {"folder": subject.folder}, *more), "--")


def ready(subject: Sigwrap, process: Running) -> tuple[Reader, int]:
    """What the command says once it is ready, and its stub."""
    said = reader(process.stdout)
    assert said.line() == b"ready"
    (redirected,) = subject.events("exec_redirected")
    return said, redirected.pid


def stored(events: list[Event], stream: str) -> bytes:
    payloads = [each.payload for each in events]
    return b"".join(recorded_bytes(each) for each in payloads if each["stream"] == stream)
