"""The modules of sigwrap that a run imports, in two pieces, of which sigwrap-forward and
sigwrap-stub need the first alone: to look each module up in an archive takes longer than to import
it. For the zipapp and the binary.
"""

from __future__ import annotations

import ast
import marshal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

_PARTS = (
    *("agent", "approve", "bare", "control", "exec", "files", "front", "join", "kernel", "log"),
    *("network", "record", "session", "signal", "start", "policy/judge", "policy/language"),
)
_MODULES = (
    *("calls", "errors", "events", "machine", "text"),
    *("cli/__init__", "cli/main", "cli/run", "cli/run_options", "cli/output"),
    *("cli/note_in_time", "cli/forward", "cli/stub"),
    *("policy/__init__", "policy/problems", "policy/shipped"),
)
# Of these, what few runs import: it is packed, as everything else is.
_SELDOM = (
    *("join", "control/activation", "control/remote_switch", "approve/control_client"),
    *("log/catalog", "log/reader", "log/trace_context"),
    # Under a policy of the user's own, and those that have limits.
    *("policy/language/build", "policy/language/schema", "policy/language/check"),
    *("policy/language/shapes", "policy/language/lint", "policy/language/yaml_text"),
    *("control/usage", "session/policy_url"),
)
_OTHER_PROGRAMS = (
    "import sys; sys.path.append(sys.argv[1]); import sigwrap.__main__, sigwrap.cli.forward,"
    "sigwrap.cli.stub, sigwrap.record.stand_in; print(*sys.modules)"
)

Code = dict[str, bytes]


def code_of_a_run(package: Path) -> tuple[Code, Code]:
    """By name, a package's with a dot at its end."""
    words = [sys.executable, "-I", "-c", _OTHER_PROGRAMS, str(package.parent)]
    imported = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    found = _code(package)
    shared = {name: code for name, code in found.items() if name.rstrip(".") in imported}
    return shared, {name: code for name, code in found.items() if name not in shared}


def _code(package: Path) -> Code:
    found = {}
    for file in sorted(_files(package)):
        parts = file.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts).replace("__init__", "")
        shown = str(file.relative_to(package.parent))
        tree = ast.parse(file.read_bytes(), shown)
        if file.parent.name != "cli":  # what says there what a command does is shown
            _remove_docstrings(tree)
        found[name] = marshal.dumps(compile(tree, shown, "exec", dont_inherit=True))
    return found


def _remove_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            node.body = node.body[1:] or [ast.copy_location(ast.Pass(), node.body[0])]


def _files(package: Path) -> Iterable[Path]:
    seldom = [package / part for part in _SELDOM]
    for part in _PARTS:
        for file in (package / part).rglob("*.py"):
            if file.with_suffix("") not in seldom and file.parent not in seldom:
                yield file
    for module in _MODULES:
        yield package / f"{module}.py"
