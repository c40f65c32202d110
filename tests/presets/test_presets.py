"""What the presets say, and what a report makes of the tool calls of agents."""

from __future__ import annotations

import pytest

from sigwrap.policy import SHIPPED
from sigwrap.policy.presets import COMMAND, PRESETS, QUOTED, as_meant
from sigwrap.session.settings import AGENTS

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


def test_each_preset_is_complete() -> None:
    assert tuple(PRESETS) == AGENTS
    for preset in PRESETS.values():
        assert preset.policy in SHIPPED
        assert bool(preset.daemons) == bool(preset.stop)
        for text in preset.tool_calls:
            assert text.count(COMMAND) + text.count(QUOTED) == 1


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
