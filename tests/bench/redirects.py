"""What a redirect in place adds to the replacement, run directly in the same session."""

from __future__ import annotations

from tests.bench.beside import Line, beside
from tests.bench.results import Result
from tests.bench.setting import Setting, policy, sigwrap
from tests.bench.workloads import exec_line

_REPLACEMENT = "/bin/true"
_US_OF_MS = 1e3


def measure(setting: Setting) -> Result:
    folder, count = setting.make_folder("redirects"), setting.amount(300, 50)
    asked = folder / "asked-for"
    asked.write_text("#!/bin/sh\nexit 1\n")
    asked.chmod(0o755)
    to = f"{{command: {_REPLACEMENT}}}"
    rule = f"  - {{name: other, commands: [asked-for], decision: redirect, redirect_to: {to}}}\n"
    wrapped = sigwrap("-p", policy(folder, "redirects", rule))
    result = beside(
        "redirect",
        "redirect in place, beside the replacement run directly",
        {
            "direct": Line(prefix=wrapped, words=exec_line(count, _REPLACEMENT), folder=folder),
            "redirected": Line(prefix=wrapped, words=exec_line(count, str(asked)), folder=folder),
        },
        rounds=setting.rounds,
        unit="exec",
        units=count,
    )
    added_us = result.subjects[1].added_us
    result.figures["added_ms"] = {kind: value / _US_OF_MS for kind, value in added_us.items()}
    return result
