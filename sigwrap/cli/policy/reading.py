"""sigwrap policy list, show, diff, schema."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import Annotated, Any

import typer

from sigwrap.cli.group import App
from sigwrap.cli.options import JsonOption, StoreOption, store_folder
from sigwrap.cli.output import out
from sigwrap.cli.policy.shared import (
    PolicyArgument,
    RootOption,
    load,
    plain,
    policy_then,
    variables,
)
from sigwrap.errors import PolicyError
from sigwrap.escape import printable, shortened
from sigwrap.policy.judge.rules import CommandRule, Policy, SignalRule
from sigwrap.policy.tools.reference import json_schema
from sigwrap.policy.tools.show import policy_text
from sigwrap.start.policy_files import SHIPPED, files_here, load_policy
from sigwrap.store.catalog import open_session

_OF_A_SESSION = "session:"
_DIFF_FORMAT = "sigwrap.policy-diff/2"
_SECTIONS = ("command_rules", "signal_rules", "file_rules", "network_rules")
_DESCRIPTION_SHOWN = 100

DiffArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE|session:ID",
        help="session:ID is the policy of that session, and session: that of the latest one",
    ),
]


app = App()


@app.command("list")
def list_policies(root: RootOption = None, as_json: JsonOption = False) -> None:
    """List shipped policies and policy files.

    It looks for policy files in the current directory.
    """
    known = variables(root)
    listed = []
    for selector in (*SHIPPED, *files_here()):
        policy, problem = None, ""
        try:
            policy = load_policy(selector, variables=known)
        except PolicyError as error:
            problem = error.message
        listed.append(_listed(selector, policy, problem))
    if as_json:
        out(json.dumps(listed, indent=2))
        return
    width = max(len(printable(each["selector"])) for each in listed)
    for each in listed:
        out(f"{printable(each['selector']):<{width}}  {'; '.join(_listed_parts(each))}")


def _listed(selector: str, policy: Policy | None, problem: str) -> dict[str, Any]:
    rules: list[CommandRule | SignalRule] = []
    if policy is not None:
        rules = [*policy.command_rules, *policy.signal_rules]
    about = "" if policy is None else " ".join(policy.description.split())
    return {
        "selector": selector,
        "shipped": selector in SHIPPED,
        "bases": [] if policy is None else list(policy.bases),
        "about": re.split(r"(?<=[.:;]) ", about, maxsplit=1)[0].rstrip(":;"),
        "command": "" if policy is None else policy.default_command.value,
        "signal": "" if policy is None else policy.default_signal.value,
        "rules": len(rules),
        "decisions": dict(Counter(rule.decision.value for rule in rules).most_common()),
        "problem": problem,
    }


def _listed_parts(listed: dict[str, Any]) -> Iterator[str]:
    if listed["problem"]:
        yield f"does not load; see: sigwrap policy check {printable(listed['selector'])}"
        return
    yield "shipped" if listed["shipped"] else "file"
    if listed["bases"]:
        yield f"extends {printable(listed['bases'][0])}"
    yield "1 rule" if listed["rules"] == 1 else f"{listed['rules']} rules"
    yield f"default: command {listed['command']}, signal {listed['signal']}"
    if listed["about"]:
        yield shortened(printable(listed["about"]), _DESCRIPTION_SHOWN)
    else:
        counts = [f"{count} {decision}" for decision, count in listed["decisions"].items()]
        yield f"no description; rules: {', '.join(counts)}" if counts else "no description"


@app.command()
def show(policy: PolicyArgument, root: RootOption = None, as_json: JsonOption = False) -> None:
    """Print a policy as it takes effect.

    The output has the rules of its bases, and the values of its variables.
    """
    loaded = load(policy, root)
    out(json.dumps(plain(loaded), indent=2) if as_json else policy_text(loaded))


@app.command()
def diff(
    first: DiffArgument,
    second: DiffArgument,
    root: RootOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two policies as they take effect.

    It compares the output of policy show, without names of policies and without descriptions. The
    exit status is 1 if the policies differ, and 0 if not.
    """
    texts = [_comparable(_any_policy(each, root, store)) for each in (first, second)]
    lines = list(_diff_lines(texts[0], texts[1], first, second))
    if as_json:
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
        for section in _SECTIONS
    }
    same = policy._replace(name="policy", description="", bases=(), **rules)
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
    out(json_schema().rstrip())
