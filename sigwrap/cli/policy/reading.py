"""sigwrap policy list, check, show, diff, schema."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from sigwrap.cli.examples import examples
from sigwrap.cli.options import JsonOption, StoreOption, store_folder
from sigwrap.cli.output import note, out
from sigwrap.cli.policy.recorded import policy_then
from sigwrap.cli.policy.shared import PolicyArgument, RootOption, load, plain, variables
from sigwrap.cli.showing import columns
from sigwrap.errors import PolicyError
from sigwrap.escape import printable
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.language.lint import lint
from sigwrap.policy.problems import InvalidPolicy, Problem
from sigwrap.policy.tools.differences import differences, differences_text
from sigwrap.policy.tools.listing import Listed, listing_text
from sigwrap.policy.tools.reference import json_schema
from sigwrap.policy.tools.renamed import with_new_keys
from sigwrap.policy.tools.show import policy_text
from sigwrap.policy.tools.weakened import weakenings
from sigwrap.report.forms.layout import wrapped
from sigwrap.start.policy_files import SHIPPED, files_here, load_policy, rewrite
from sigwrap.status import REFUSED
from sigwrap.store.catalog import open_session

_HOW_TO_WEAKEN = (
    "the base decides these; to weaken it, add to your rule `overrides: [NAME]` with the base's "
    "rule, or accept with `overrides: []`"
)
_OF_A_SESSION = "session:"
_DIFF_FORMAT = "sigwrap.policy-diff/1"

DiffArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE|session:ID",
        help="session:ID is the policy of that session, and session: that of the latest one",
    ),
]


def register(app: typer.Typer) -> None:
    app.command("list", epilog=examples("policy list"))(list_policies)
    app.command(epilog=examples("policy check"))(check)
    app.command(epilog=examples("policy show"))(show)
    app.command(epilog=examples("policy diff"))(diff)
    app.command(epilog=examples("policy schema"))(schema)


def list_policies(root: RootOption = None, as_json: JsonOption = False) -> None:
    """List shipped policies and policy files.

    It looks for policy files in the current directory.
    """
    known = variables(root)
    listed = [Listed.of(name, load_policy(name, variables=known), shipped=True) for name in SHIPPED]
    for file in files_here():
        try:
            listed.append(Listed.of(file, load_policy(file, variables=known)))
        except PolicyError as error:
            listed.append(Listed(selector=file, problem=error.message))
    out(json.dumps([plain(each) for each in listed], indent=2) if as_json else listing_text(listed))


def check(
    files: Annotated[list[str], typer.Argument(metavar="NAME|FILE...", help="Policies to check")],
    root: RootOption = None,
    as_json: JsonOption = False,
    write: Annotated[
        bool, typer.Option("--write", help="Replace old keys in the files, and show the changes")
    ] = False,
) -> None:
    """Check policies for errors and doubtful rules.

    Doubtful rules never match, or allow more than they seem to. A rule that would weaken the base
    is an error, unless it says so with `overrides`.
    """
    findings: list[Problem] = []
    failures: list[str] = []
    for file in files:
        laxer: tuple[Problem, ...] = ()
        try:
            policy = load(file, root)
            if write and file not in SHIPPED and (changes := rewrite(file, with_new_keys)):
                for line in changes.split("\n"):
                    (note if as_json else out)(printable(line))
                policy = load(file, root)
            laxer = weakenings(policy)
            found = [*laxer, *policy.warnings, *lint(policy)]
            failures += [file] if laxer else []
        except InvalidPolicy as error:
            failures.append(file)
            found = list(error.problems)
        except PolicyError as error:
            failures.append(file)
            found = []
            note(*error.lines)
        findings += found
        if not as_json:
            for problem in found:
                out(printable(str(problem)))
            if file not in failures:
                out(printable(f"{file}: {'ok, with warnings' if found else 'ok'}"))
            if laxer:
                note(_HOW_TO_WEAKEN)
    if as_json:
        out(json.dumps([plain(each) for each in findings], indent=2))
    if failures:
        raise typer.Exit(REFUSED)


def show(policy: PolicyArgument, root: RootOption = None, as_json: JsonOption = False) -> None:
    """Print a policy as it takes effect.

    The output has the rules of its bases, and the values of its variables.
    """
    loaded = load(policy, root)
    out(json.dumps(plain(loaded), indent=2) if as_json else policy_text(loaded))


def diff(
    first: DiffArgument,
    second: DiffArgument,
    root: RootOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the effects of two policies.

    It compares rules, their order if it matters, defaults, limits and all other keys, but not names
    and descriptions. The exit status is 1 if the policies differ, and 0 if not.
    """
    policies = [_any_policy(each, root, store) for each in (first, second)]
    found = differences(*policies)
    if as_json:
        document = {"schema": _DIFF_FORMAT, "first": first, "second": second}
        out(json.dumps({**document, "differences": [plain(each) for each in found]}, indent=2))
    else:
        lines = differences_text(found, first, second).split("\n")
        out("\n".join(row for line in lines for row in wrapped(line, columns(), "    ")))
    if found:
        raise typer.Exit(1)


def _any_policy(selector: str, root: RootOption, store: str | None) -> Policy:
    if not selector.startswith(_OF_A_SESSION):
        return load(selector, root)
    session = open_session(store_folder(store), selector.removeprefix(_OF_A_SESSION))
    # The same variables for both: a folder that has moved makes no other policy.
    return policy_then(session, variables(root))


def schema() -> None:
    """Print the JSON Schema of policies.

    Editors use it to complete keys and mark mistakes. Write it to a file, and start your policy
    with `# yaml-language-server: $schema=` and the path of that file.
    """
    out(json_schema().rstrip())
