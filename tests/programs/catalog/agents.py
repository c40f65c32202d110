"""Coding agents, each with a scripted model on loopback that has it run one command."""

from __future__ import annotations

from pathlib import Path

from tests.programs.program import Program

_MODEL = Path(__file__).parents[1] / "projects" / "agents" / "model.py"
_COMMAND = "printf 'one\\ntwo\\n' | wc -l >counted; expr 40 + 2 | tee said"
_ASK = (
    "python3 -I $CACHE/model.py {command} >port & trap 'kill $!' EXIT;"
    " until test -s port; do sleep 0.02; done; AT=http://127.0.0.1:$(cat port); export KEY=none;"
)
_CLAUDE = (
    "export ANTHROPIC_API_KEY=none ANTHROPIC_BASE_URL=$AT DISABLE_AUTOUPDATER=1"
    " CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 CLAUDE_CODE_DISABLE_AGENT_VIEW=1;"
    " $CACHE/node_modules/@anthropic-ai/claude-code-linux-x64/claude -p hello --allowedTools Bash"
)
_CODEX = (
    "node $CACHE/node_modules/@openai/codex/bin/codex.js --no-daemon exec --skip-git-repo-check"
    " -s SANDBOX -m any -c model_provider=m -c model_providers.m.name=m"
    " -c model_providers.m.base_url=$AT/v1 -c model_providers.m.wire_api=responses"
    " -c model_providers.m.env_key=KEY hello 2>/dev/null"
)
_CODEX_PACKAGE = "@openai/codex@0.171.0"
_GEMINI = (
    "mkdir ~/.gemini; cp $CACHE/settings.json ~/.gemini;"
    " export GEMINI_API_KEY=none GOOGLE_GEMINI_BASE_URL=$AT;"
    " node $CACHE/node_modules/@google/gemini-cli/bundle/gemini.js -m gemini-2.5-flash --yolo"
    " --skip-trust -p hello 2>/dev/null"
)


def _agent(
    name: str, package: str, line: str, setup: str = "", differs: dict[str, str] | None = None
) -> Program:
    quoted = _COMMAND.replace("'", "'\\''")
    ask = _ASK.format(command=f"'{quoted}'")
    return Program(
        name=name,
        needs=("node", "npm", "python3"),
        setup=f"npm install --no-audit --no-fund --prefix . {package}; cp {_MODEL} .; {setup}",
        line=("bash", "-c", f"{ask} {line} </dev/null; echo $?; cat counted said"),
        must_say="^42$",
        ignore_files="port",
        within_s=300,
        differs=differs or {},
    )


PROGRAMS = [
    _agent(
        "Claude Code",
        "@anthropic-ai/claude-code@2.1.197",
        _CLAUDE,
        "chmod +x node_modules/@anthropic-ai/claude-code-linux-x64/claude",
    ),
    _agent("Codex", _CODEX_PACKAGE, _CODEX.replace("SANDBOX", "danger-full-access")),
    _agent(
        "Codex in its own sandbox",
        _CODEX_PACKAGE,
        _CODEX.replace("SANDBOX", "workspace-write"),
        differs={
            "agent-default": "file rules forbid mounts, which bubblewrap needs; see "
            "[agents](agents.md)"
        },
    ),
    _agent(
        "Gemini CLI",
        "@google/gemini-cli@0.61.0",
        _GEMINI,
        """echo '{"security": {"auth": {"selectedType": "gemini-api-key"}}}' >settings.json""",
    ),
]
