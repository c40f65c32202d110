"""sigwrap policy check, try; and test, the old name for the second half of check."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from difflib import unified_diff
from pathlib import Path
from typing import Annotated

import typer
from yaml import YAMLError

from sigwrap.cli.group import App
from sigwrap.cli.options import (
    JsonOption,
    PagerOption,
    SessionArgument,
    StoreOption,
    chosen_format,
    store_folder,
)
from sigwrap.cli.output import note, out
from sigwrap.cli.policy.shared import PolicyArgument, RootOption, load, plain, variables
from sigwrap.cli.tried import show_tried
from sigwrap.cli.whole_file import whole_file
from sigwrap.errors import PolicyError, UsageError
from sigwrap.escape import printable
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.language.lint import lint
from sigwrap.policy.problems import InvalidPolicy, Problem
from sigwrap.policy.tools.cases import run_cases, weakenings
from sigwrap.policy.tools.renamed import with_new_keys
from sigwrap.policy.tools.show import policy_text
from sigwrap.report.forms.what_if import WhatIfForm
from sigwrap.start.policy_files import SHIPPED, load_policy, read_source
from sigwrap.status import REFUSED
from sigwrap.store.catalog import open_session

_HOW_TO_WEAKEN = (
    "the base decides these; to weaken it, add to your rule `overrides: [NAME]` with the base's "
    "rule, or accept with `overrides: []`"
)
_CASES_EXAMPLE = "such as tests: [{command: git push --force, decision: deny}]"
_TESTS_FAIL = 1
_EXAMPLE = {"HOME": "/home/user", "PROJECT_ROOT": "/home/user/project"}


app = App()


@app.command()
def check(
    files: Annotated[list[str], typer.Argument(metavar="NAME|FILE...", help="Policies to check")],
    root: RootOption = None,
    as_json: JsonOption = False,
    write: Annotated[
        bool, typer.Option("--write", help="Replace old keys in the files, and show the changes")
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
            _write_new_keys(file, root, print_line=note if as_json else out)
        checked.append(_checked(file, root, prints=not as_json))
    if as_json:
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
        verdict += f"; {'1 test passes' if len(results) == 1 else f'{len(results)} tests pass'}"
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


@app.command(hidden=True)
def test(policy: PolicyArgument, root: RootOption = None, as_json: JsonOption = False) -> None:
    """Run the tests of a policy."""
    note('"policy test" is now "policy check"')
    results = list(run_cases(Engine(load(policy, root))))
    if not results:
        raise UsageError(f"{policy} has no tests", _CASES_EXAMPLE)
    failed = [each for each in results if not each.passed]
    if as_json:
        out(json.dumps([{**plain(each), "passed": each.passed} for each in results], indent=2))
    else:
        for each in failed:
            out(printable(f"{each.case.place}: {each}"))
        passed = f"{len(results) - len(failed)} of {len(results)} tests pass"
        out(printable(f"{policy}: {passed}"))
    if failed:
        raise typer.Exit(_TESTS_FAIL)


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
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        WhatIfForm | None,
        typer.Option("--format", help="Output format [default: text]", show_default=False),
    ] = None,
    exit_zero: Annotated[
        bool, typer.Option("--exit-zero", help="Exit with 0 even if decisions differ")
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
    no_pager: PagerOption = False,
) -> None:
    """Show what a policy would have decided in a session.

    It lists the decisions that would differ from those in the log, with rules that would allow what
    the policy denies. The exit status is 1 if any decision differs.
    """
    kind = chosen_format(form, WhatIfForm.TEXT, as_json=as_json)
    opened = open_session(store_folder(store), session)
    if status := show_tried(
        opened, policy, root, kind, exit_zero=exit_zero, with_pager=not no_pager
    ):
        raise typer.Exit(status)
