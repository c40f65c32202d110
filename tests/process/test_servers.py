"""Servers that have a way to end for each signal: what is sent to sigwrap is what arrives."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.harness import INTERRUPTED, Sigwrap
from tests.support.programs import needs
from tests.support.waiting import PATIENCE_S, await_that, reader

POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/errors notice;
events {{}}
http {{ access_log off; server {{ listen unix:{folder}/socket; }} }}
"""


@needs("nginx")
@pytest.mark.parametrize(
    ("name", "said"), [("SIGQUIT", "gracefully shutting down"), ("SIGTERM", "exiting")]
)
def test_nginx_reloads_and_ends_as_it_is_told(sigwrap: Sigwrap, name: str, said: str) -> None:
    (sigwrap.folder / "conf").write_text(NGINX.format(folder=sigwrap.folder))
    errors = sigwrap.folder / "errors"
    words = ["nginx", "-p", str(sigwrap.folder), "-e", str(errors), "-c", "conf"]
    process = sigwrap.start("-p", "agent-observe", "--grace", "1000", "--", *words)
    await_that(lambda: errors.exists() and "start worker process " in errors.read_text())
    process.send_signal(signal.SIGHUP)
    await_that(lambda: "exited with code 0" in errors.read_text())  # the worker of before
    assert "reconfiguring" in errors.read_text()
    process.send_signal(signal.Signals[name])
    assert process.wait(PATIENCE_S) == INTERRUPTED
    assert said in errors.read_text()
    assert sigwrap.interrupts() == ["forwarded", "received", "forwarded"]


@pytest.mark.skipif(not POSTGRES, reason="needs postgresql")
def test_postgres_with_a_client_shuts_down_fast(as_user: Sigwrap) -> None:
    """SIGTERM, which waits for clients, would be followed by SIGKILL."""
    if as_user.user is None:
        pytest.skip("PostgreSQL refuses to run as root")
    programs, data = POSTGRES[-1].parent, as_user.folder / "data"
    made = as_user.native(
        str(programs / "initdb"), "-D", str(data), "-U", "somebody", "-A", "trust", "--no-sync"
    )
    assert made.returncode == 0, made.stderr
    at = ["-k", str(as_user.folder), "-h", ""]
    server = as_user.start(
        "-p", "agent-observe", "--", str(programs / "postgres"), "-D", str(data), *at
    )
    said = reader(server.stderr)
    said.until(rb"ready to accept connections")
    client = as_user.start_line(
        [str(programs / "psql"), "-h", str(as_user.folder), "-U", "somebody", "-AtX", "postgres"]
    )
    client.say(b"select 6*7;\n")
    reader(client.stdout).until(rb"42\n")
    server.send_signal(signal.SIGINT)
    assert server.wait(PATIENCE_S) == INTERRUPTED
    assert b"received fast shutdown request" in said.rest()
    state = subprocess.run(
        [programs / "pg_controldata", data], capture_output=True, text=True, check=True
    )
    assert "shut down\n" in state.stdout
    assert "escalated" not in as_user.interrupts()
