"""sigwrap doctor: what this machine can do, each by trying it."""

from __future__ import annotations

import json
import os
import sys

import typer

import sigwrap
from sigwrap import status
from sigwrap.cli.examples import examples
from sigwrap.cli.options import JsonOption, StoreOption
from sigwrap.cli.output import out, out_lines
from sigwrap.cli.showing import columns, style

_STATUS = """\b
Exit status:
  0    sigwrap can run here and enforce every rule
  1    sigwrap can run here, but may not enforce every rule
  125  sigwrap can't run here"""


def register(app: typer.Typer) -> None:
    app.command(epilog=f"{examples('doctor')}\n\n{_STATUS}")(doctor)


def doctor(store: StoreOption = None, as_json: JsonOption = False) -> int:
    """Check what sigwrap can do on this machine.

    Tries each feature. If a feature does not work, says what is lost and how to get it. Leaves
    nothing behind.
    """
    from sigwrap.doctor import told  # other commands do without
    from sigwrap.doctor.aside import Interrupted
    from sigwrap.doctor.trials import all_findings

    system = os.uname()
    machine = told.Machine(sigwrap.__version__, system.release, system.machine, os.geteuid())
    try:
        findings = all_findings(store, own_words=len(sys.argv) - 1)
    except Interrupted:  # by a signal that the caller blocks
        return status.INTERRUPTED
    if as_json:
        out(json.dumps(told.document(machine, findings), indent=2))
    else:
        out_lines(told.lines(machine, findings, columns=columns(), style=style()))
    return told.exit_status(findings)
