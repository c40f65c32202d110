"""What the presets say, and what a report makes of the tool calls of agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from sigwrap.errors import PolicyError
from sigwrap.policy.language.document import SHIPPED, Source
from sigwrap.policy.presets import PRESETS, as_meant
from sigwrap.policy.tools.presets import fields_of, module_text
from sigwrap.run.settings import AGENTS

ROOT = Path(__file__).parents[2]
# As these programs handed them to a shell.
CLAUDE = (
    "source /home/ann/.claude/shell-snapshots/snapshot-bash-1795699993754-prn7x4.sh 2>/dev/null "
    "|| true && shopt -u extglob 2>/dev/null || true && eval 'printf '\"'\"'a\\n'\"'\"' | cat' "
    "< /dev/null && pwd -P >| /tmp/claude-a125-cwd"
)
GEMINI = (
    "shopt -u promptvars nullglob extglob nocaseglob dotglob; "
    "_bgpids_file=/tmp/gemini-shell-5vbFhM/bgpids.tmp\n(\n  trap 'jobs -p > \"$_bgpids_file\"' "
    "EXIT\nprintf 'a\\n' | cat\n)\n__code=$?\nexit $__code"
)


def test_the_checked_form_is_that_of_the_files() -> None:
    """python -m sigwrap.policy.tools.presets policies/presets/*.yaml"""
    files = sorted((ROOT / "policies/presets").iterdir())
    sources = [Source(name=each.name, text=each.read_text(encoding="utf-8")) for each in files]
    checked = ROOT / "sigwrap/policy/shipped/presets.py"
    assert checked.read_text(encoding="utf-8") == module_text(sources)
    assert tuple(PRESETS) == AGENTS
    assert {each.policy for each in PRESETS.values()} <= set(SHIPPED)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "a preset must be a mapping"),
        ("{program: x, policy: ci}", "a preset needs install"),
        ("{program: x, policy: ci, install: y, before: z}", "another type: before"),
        ("{program: x, policy: ci, install: y, tool_calls: [eval]}", "one of {command}"),
        ("{program: x, policy: ci, install: y, daemons: [x y]}", "go together"),
    ],
)
def test_what_is_wrong_with_a_preset_is_said(text: str, problem: str) -> None:
    with pytest.raises(PolicyError) as raised:
        fields_of(Source(name="x.yaml", text=text))
    assert problem in "\n".join(raised.value.lines)


@pytest.mark.parametrize("text", [CLAUDE, GEMINI])
def test_a_tool_call_is_shown_as_its_command(text: str) -> None:
    assert as_meant(["/bin/bash", "-c", text]) == ["/bin/bash", "-c", "printf 'a\\n' | cat"]


def test_whatever_else_runs_is_shown() -> None:
    for argv in [
        ["bash", "-c", CLAUDE + "; rm -r x"],
        ["bash", "-c", CLAUDE.replace("snapshot-bash", "$(rm -r x)")],
        ["bash", "-c", CLAUDE.replace("snapshot-bash", "x; rm -r")],
        ["bash", "-c", CLAUDE.replace(" | cat' ", " | cat' ; rm -r x ")],
        ["bash", "-c", CLAUDE.replace(" | cat' ", " | cat'$(rm -r x)")],
        ["bash", "-c", GEMINI.replace("trap 'jobs", "rm -r x; trap 'jobs")],
        ["bash", "-c", "eval 'a < /dev/null && pwd -P >| /tmp/x"],
        ["python3", "-c", CLAUDE],
        ["bash", CLAUDE],
        ["bash"],
        [],
    ]:
        assert as_meant(argv) is argv, argv


def test_an_agents_daemon_is_known_by_its_words() -> None:
    codex, claude, gemini = PRESETS["codex"], PRESETS["claude"], PRESETS["gemini"]
    words = ("codex", "app-server", "--listen", "unix://")
    assert codex.as_daemon(("/opt/bin/codex", *words[1:])) == words
    assert codex.as_daemon(("node", "/opt/codex.js", *words[1:])) == words
    assert codex.as_daemon(("codex", "-c", "x=1", *words[1:])) == ("codex", "-c", "x=1", *words[1:])
    assert codex.as_daemon(("codex", "exec", "what is an app-server")) == ()
    assert codex.as_daemon(("vim", "codex", "app", "-server")) == ()
    assert claude.as_daemon(("claude", "daemon", "run")) == ("claude", "daemon", "run")
    assert claude.as_daemon(()) == gemini.as_daemon(("gemini",)) == ()
