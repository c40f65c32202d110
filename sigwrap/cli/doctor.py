"""sigwrap doctor: check what sigwrap can do on this machine."""

from __future__ import annotations

import json
import os

import sigwrap
from sigwrap.cli.group import App
from sigwrap.cli.options import Format, FormatOption, StoreOption
from sigwrap.cli.output import out, out_lines
from sigwrap.cli.showing import columns, style

_STATUS = """\b
Exit status:
  0    sigwrap can run here and enforce every rule
  1    sigwrap can run here, but may not enforce every rule
  125  sigwrap can't run here"""


app = App()


@app.command(epilog=_STATUS)
def doctor(store: StoreOption = None, form: FormatOption = Format.TEXT) -> int:
    """Check what sigwrap can do on this machine.

    Tries each feature. If a feature does not work, says what is lost and how to get it. Leaves
    nothing behind.
    """
    from sigwrap.doctor import output  # other commands do not need these
    from sigwrap.doctor.trials import all_findings

    system = os.uname()
    machine = output.Machine(sigwrap.__version__, system.release, system.machine, os.geteuid())
    findings = all_findings(store)
    if form is Format.JSON:
        out(json.dumps(output.document(machine, findings), indent=2))
    else:
        out_lines(output.lines(machine, findings, columns=columns(), style=style()))
    return output.exit_status(findings)
