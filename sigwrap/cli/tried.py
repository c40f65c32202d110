"""Shows how a policy would have decided in a recorded session (policy try)."""

from __future__ import annotations

from pathlib import Path

from sigwrap.cli.showing import columns, pager, style
from sigwrap.cli.verify import note_broken_chains
from sigwrap.report.check.decisions import recorded_variables
from sigwrap.report.check.what_if import WhatIfFold
from sigwrap.report.forms.what_if import WhatIfForm, what_if_json, what_if_md, what_if_text
from sigwrap.start.policy_files import host_variables, load_policy
from sigwrap.store.reader import Session


def show_tried(
    session: Session,
    policy: str,
    root: Path | None,
    form: WhatIfForm,
    *,
    exit_zero: bool,
    with_pager: bool,
) -> int:
    """Print the differences, and return the exit status: 1 if there are any."""
    note_broken_chains([session])
    started = session.first()
    variables = recorded_variables(started.payload if started is not None else {})
    variables = variables or host_variables(".")
    if root is not None:
        variables = {**variables, "PROJECT_ROOT": host_variables(str(root))["PROJECT_ROOT"]}
    fold = WhatIfFold(load_policy(policy, variables=variables))
    for event in session.events():
        fold.add(event)
    found = fold.result()
    with pager(wanted=with_pager) as show:
        match form:
            case WhatIfForm.TEXT:
                show(what_if_text(found, style(), columns()))
            case WhatIfForm.MD:
                show(what_if_md(found))
            case WhatIfForm.JSON:
                show(what_if_json(session.id, found))
    return int(found.differ > 0 and not exit_zero)
