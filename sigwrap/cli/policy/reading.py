"""sigwrap policy list, show, diff, schema, check, try."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Any

import typer
from yaml import YAMLError

from sigwrap.cli.group import App
from sigwrap.cli.help import document
from sigwrap.cli.options import (
    Format,
    FormatOption,
    PagerOption,
    SessionArgument,
    StoreOption,
    store_folder,
)
from sigwrap.cli.output import note, out
from sigwrap.cli.policy.shared import (
    PolicyArgument,
    RootOption,
    load,
    plain,
    policy_then,
    variables,
)
from sigwrap.cli.showing import columns, pager, style
from sigwrap.cli.verify import note_broken_chains
from sigwrap.cli.whole_file import whole_file
from sigwrap.errors import REFUSED, PolicyError, UsageError
from sigwrap.events import counted
from sigwrap.log.catalog import open_session
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.language.lint import lint
from sigwrap.policy.language.schema import RULES
from sigwrap.policy.problems import InvalidPolicy, Problem
from sigwrap.policy.tools.cases import run_cases, weakenings
from sigwrap.policy.tools.renamed import with_new_keys
from sigwrap.policy.tools.show import policy_text
from sigwrap.report.check.decisions import recorded_variables
from sigwrap.report.check.what_if import WhatIfFold
from sigwrap.report.forms.what_if import WhatIfForm, what_if_json, what_if_md, what_if_text
from sigwrap.start.policy_files import SHIPPED, files_here, load_policy, read_source
from sigwrap.text import printable, shortened

_OF_A_SESSION = "session:"
_DIFF_FORMAT = "sigwrap.policy-diff/2"
_DESCRIPTION_SHOWN = 100
_HOW_TO_WEAKEN = (
    "the base decides these; to weaken it, add to your rule `overrides: [NAME]` with the base's "
    "rule, or accept with `overrides: []`"
)
_TESTS_FAIL = 1
_EXAMPLE = {"HOME": "/home/user", "PROJECT_ROOT": "/home/user/project"}

DiffArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE|session:ID",
        help="session:ID is the policy of that session, and session: that of the latest one",
    ),
]


app = App()


@app.command("list")
def list_policies(root: RootOption = None, form: FormatOption = Format.TEXT) -> None:
    """List shipped policies and policy files.

    It looks for policy files in the current directory.
    """
    known = variables(root)
    listed = [_listed(each, known) for each in (*SHIPPED, *files_here())]
    if form is Format.JSON:
        out(json.dumps(listed, indent=2))
        return
    width = max(len(printable(each["selector"])) for each in listed)
    for each in listed:
        out(f"{printable(each['selector']):<{width}}  {printable('; '.join(_parts(each)))}")


def _listed(selector: str, known: Mapping[str, str]) -> dict[str, Any]:
    found = {"selector": selector, "shipped": selector in SHIPPED, "bases": [], "about": ""}
    found |= {"command": "", "signal": "", "rules": 0, "decisions": {}, "problem": ""}
    try:
        policy = load_policy(selector, variables=known)
    except PolicyError as error:
        return found | {"problem": error.message}
    decisions = [each.decision.value for each in policy.command_rules]
    decisions += [each.decision.value for each in policy.signal_rules]
    about = " ".join(policy.description.split())
    return found | {
        "bases": list(policy.bases),
        "about": re.split(r"(?<=[.:;]) ", about, maxsplit=1)[0].rstrip(":;"),
        "command": policy.default_command.value,
        "signal": policy.default_signal.value,
        "rules": len(decisions),
        "decisions": dict(Counter(decisions).most_common()),
    }


def _parts(listed: dict[str, Any]) -> Iterator[str]:
    if listed["problem"]:
        yield f"does not load; see: sigwrap policy check {listed['selector']}"
        return
    yield "shipped" if listed["shipped"] else "file"
    if listed["bases"]:
        yield f"extends {listed['bases'][0]}"
    yield counted(listed["rules"], "rule")
    yield f"default: command {listed['command']}, signal {listed['signal']}"
    yield shortened(listed["about"], _DESCRIPTION_SHOWN) or "no description"


@app.command()
def show(policy: PolicyArgument, root: RootOption = None, form: FormatOption = Format.TEXT) -> None:
    """Print a policy as it takes effect.

    The output has the rules of its bases, and the values of its variables.
    """
    loaded = load(policy, root)
    out(json.dumps(plain(loaded), indent=2) if form is Format.JSON else policy_text(loaded))


@app.command()
def diff(
    first: DiffArgument,
    second: DiffArgument,
    root: RootOption = None,
    store: StoreOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Compare two policies as they take effect.

    It compares the output of policy show, without names of policies and without descriptions. The
    exit status is 1 if the policies differ, and 0 if not.
    """
    texts = [_comparable(_any_policy(each, root, store)) for each in (first, second)]
    lines = list(_diff_lines(texts[0], texts[1], first, second))
    if form is Format.JSON:
        document = {"schema": _DIFF_FORMAT, "first": first, "second": second, "diff": lines}
        out(json.dumps(document, indent=2))
    elif lines:
        out("\n".join(map(printable, lines)))
    else:
        out(printable(f"{first} and {second} decide the same"))
    if lines:
        raise typer.Exit(1)


def _any_policy(selector: str, root: RootOption, store: str | None) -> Policy:
    if not selector.startswith(_OF_A_SESSION):
        return load(selector, root)
    session = open_session(store_folder(store), selector.removeprefix(_OF_A_SESSION))
    # Both get the same variables: a project that has moved has the same policy.
    return policy_then(session, variables(root))


def _comparable(policy: Policy) -> list[str]:
    """Return the lines of policy show, without what does not change a decision."""
    rules: dict[str, Any] = {
        section: tuple(rule._replace(description="") for rule in getattr(policy, section))
        for section in RULES
    }
    notes: dict[str, Any] = {"description": "", "sequence": 0, "expires": "", "bases": ()}
    same = policy._replace(name="policy", **notes, **rules)
    return policy_text(same).splitlines()


def _diff_lines(
    before: Sequence[str], after: Sequence[str], first: str, second: str
) -> Iterator[str]:
    """Yield a unified diff, whose hunks begin with the name of a rule instead of a line number."""
    for line in unified_diff(before, after, first, second, lineterm=""):
        hunk = re.match(r"@@ -(\d+)", line)
        if hunk is None:
            yield line
            continue
        above = before[: max(int(hunk[1]), 1)]
        # The last rule or section that begins above the hunk.
        names = [each for each in above if re.match(r"- name: |[a-z_]+:$", each)]
        yield f"@@ {names[-1].removeprefix('- ') if names else 'policy'} @@"


@app.command()
def schema() -> None:
    """Print the JSON Schema of policies.

    Editors use it to complete keys and mark mistakes. Write it to a file, and start your policy
    with `# yaml-language-server: $schema=` and the path of that file.
    """
    out(document("policy.schema.json").rstrip())


@app.command()
def check(
    files: Annotated[list[str], typer.Argument(metavar="NAME|FILE...", help="Policies to check")],
    root: RootOption = None,
    form: FormatOption = Format.TEXT,
    write: Annotated[
        bool,
        typer.Option("--write", help="Replace old keys in these files, not in their bases"),
    ] = False,
) -> None:
    """Check policies for mistakes, and run their tests.

    It finds errors and doubtful rules, which never match, or allow more than they seem to. A rule
    that would weaken the base is an error, unless it says so with `overrides`. The exit status is
    125 after an error, and 1 if only tests fail.
    """
    checked = []
    for file in files:
        if write and file not in SHIPPED:
            _write_new_keys(file, root, print_line=note if form is Format.JSON else out)
        checked.append(_checked(file, root, prints=form is Format.TEXT))
    if form is Format.JSON:
        problems = [plain(problem) for _, found in checked for problem in found]
        out(json.dumps(problems, indent=2))
    if status := max(status for status, _ in checked):
        raise typer.Exit(status)


def _write_new_keys(file: str, root: Path | None, *, print_line: Callable[[str], object]) -> None:
    """Replace old keys in a policy that loads, and print the differences."""
    try:
        before = policy_text(load(file, root))
    except PolicyError:
        return  # the check says what is wrong
    old = read_source(file).text
    try:
        new = with_new_keys(old)
        if new == old:
            return
        with whole_file(file) as place:
            Path(place).write_text(new, encoding="utf-8", newline="")
            if policy_text(load(place, root)) != before:
                raise PolicyError("it would be another policy")
    except (PolicyError, LookupError, AttributeError, YAMLError) as error:
        raise UsageError(
            f"{file}: the old keys can't be replaced without changing the policy",
            "replace them by hand: policy check names them",
        ) from error
    for line in unified_diff(old.splitlines(), new.splitlines(), file, file, lineterm="", n=0):
        print_line(printable(line))


def _checked(file: str, root: Path | None, *, prints: bool) -> tuple[int, list[Problem]]:
    """Return the exit status for one policy and its problems."""
    try:
        policy = load(file, root)
    except InvalidPolicy as error:
        if prints:
            _print_problems(error.problems)
        return REFUSED, list(error.problems)
    except PolicyError as error:
        note(*error.lines)
        return REFUSED, []
    tested = policy
    if file in SHIPPED and root is None:
        # Its tests are about a project in a home directory, wherever this runs.
        tested = load_policy(file, variables={**variables(None), **_EXAMPLE})
    results = list(run_cases(Engine(tested)))
    failed = [each for each in results if not each.passed]
    weakened = weakenings(policy)
    found = [*weakened, *policy.warnings, *lint(policy)]
    verdict = "ok, with warnings" if found else "ok"
    if failed:
        verdict = f"{len(failed)} of {len(results)} tests failed"
    elif results:
        verdict += f"; {counted(len(results), 'test passes', 'tests pass')}"
    found += [Problem(place=each.case.place, message=str(each)) for each in failed]
    if prints:
        _print_problems(found)
        if weakened:
            note(_HOW_TO_WEAKEN)
        else:
            out(printable(f"{file}: {verdict}"))
    return REFUSED if weakened else _TESTS_FAIL if failed else 0, found


def _print_problems(problems: Iterable[Problem]) -> None:
    for problem in problems:
        out(printable(str(problem)))


@app.command("try")
def try_policy(
    policy: PolicyArgument,
    session: SessionArgument = "",
    root: Annotated[
        Path | None,
        typer.Option(
            "--root",
            metavar="DIR",
            help="Directory for ${PROJECT_ROOT} in the policy [default: the session's]",
        ),
    ] = None,
    form: Annotated[WhatIfForm, typer.Option("--format", help="Output format")] = WhatIfForm.TEXT,
    exit_zero: Annotated[
        bool, typer.Option("--exit-zero", help="Exit with 0 even if decisions differ")
    ] = False,
    store: StoreOption = None,
    no_pager: PagerOption = False,
) -> int:
    """Show what a policy would have decided in a session.

    It lists the decisions that would differ from those in the log, with rules that would allow what
    the policy denies. The exit status is 1 if any decision differs.
    """
    opened = open_session(store_folder(store), session)
    note_broken_chains([opened])
    started = opened.first()
    known = recorded_variables(started.payload if started is not None else {})
    known = known or variables(None)
    if root is not None:
        known = {**known, "PROJECT_ROOT": variables(root)["PROJECT_ROOT"]}
    fold = WhatIfFold(load_policy(policy, variables=known))
    for event in opened.events():
        fold.add(event)
    found = fold.result()
    with pager(wanted=not no_pager) as show:
        match form:
            case WhatIfForm.TEXT:
                show(what_if_text(found, style(), columns()))
            case WhatIfForm.MD:
                show(what_if_md(found))
            case WhatIfForm.JSON:
                show(what_if_json(opened.id, found))
    return int(found.differ > 0 and not exit_zero)
