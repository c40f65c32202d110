"""Examples for --help and the manual page, at least one of each command."""

from __future__ import annotations

EXAMPLES = {
    "run": (
        "sigwrap -p agent-strict --name build -- npm run build",
        "sigwrap -p ci -c 'npm ci && npm test'",
        "sigwrap --join-name agent -- npm run dev",
    ),
    "report": (
        "sigwrap report --only denied --since 10m",
        "sigwrap report build --format html -o report.html",
    ),
    "replay": ("sigwrap replay --instant", "sigwrap replay --recorded stdout"),
    "verify": ("sigwrap verify build", "sigwrap verify --lake s3://logs/ci --strict"),
    "why": ("sigwrap why", "sigwrap why build 4711"),
    "query": (
        'sigwrap query "select what, rule, count from denials"',
        'sigwrap query "select name, exit_status from sessions" --all',
        'sigwrap query --lake s3://logs/ci "select session, reason from sessions"',
    ),
    "export": (
        "sigwrap export --format jsonl -o events.jsonl",
        "sigwrap export --format prom --all",
        "sigwrap export --format otlp --signal traces -o spans.jsonl",
    ),
    "ship": (
        "sigwrap ship --all --to s3://logs/fleet",
        "sigwrap ship build --to file:///srv/fleet",
    ),
    "sessions": ("sigwrap sessions", "sigwrap sessions prune --older-than 30d --keep 20"),
    "sessions rm": ("sigwrap sessions rm build",),
    "sessions prune": (
        "sigwrap sessions prune --older-than 30d --keep 20",
        "sigwrap sessions prune --max-size 1G --dry-run",
    ),
    "sessions recover": ("sigwrap sessions recover",),
    "lake sql": (
        "sigwrap lake sql --engine clickhouse --at s3://logs/ci",
        "sigwrap lake sql --engine duckdb --at file:///srv/lake",
        "sigwrap lake sql --questions",
    ),
    "lake report": ("sigwrap lake report --at s3://logs/ci --since 7d -o report.html",),
    "lake compact": ("sigwrap lake compact --at s3://logs/ci",),
    "help": ("sigwrap help", "sigwrap help policy"),
    "approve": ("sigwrap approve", "sigwrap approve 3f2a10 --always"),
    "watch": (
        "sigwrap watch --notify bell",
        "sigwrap watch --format text",
        "sigwrap watch --full 3f2a10",
    ),
    "deny": ('sigwrap deny 3f2a10 --message "not on main"',),
    "pause": ('sigwrap pause build --reason "let me look"',),
    "resume": ("sigwrap resume",),
    "stop": ("sigwrap stop build",),
    "signal": ("sigwrap signal build SIGUSR1", "sigwrap signal SIGTERM --reason late"),
    "serve": (
        "sigwrap serve --open",
        "sigwrap serve --socket $XDG_RUNTIME_DIR/sigwrap-page",
    ),
    "doctor": ("sigwrap doctor", "sigwrap doctor --format json"),
    "hook run": ("cat call.json | sigwrap hook run claude-code -p agent-strict",),
    "hook install": (
        "sigwrap hook install claude-code --dry-run",
        "sigwrap hook install gemini --user --policy agent-strict",
    ),
    "hook uninstall": ("sigwrap hook uninstall claude-code",),
    "completion": ("source <(sigwrap completion bash)",),
    "link": ("sudo sigwrap link /usr/local/bin",),
    "man": ("sigwrap man | man -l -",),
    "killswitch on": ('sigwrap killswitch on --reason "it deletes things"',),
    "killswitch off": ("sigwrap killswitch off",),
    "killswitch status": ("sigwrap killswitch status --format json",),
    "policy list": ("sigwrap policy list",),
    "policy check": ("sigwrap policy check policy.yaml",),
    "policy show": ("sigwrap policy show ci",),
    "policy diff": (
        "sigwrap policy diff agent-default policy.yaml",
        "sigwrap policy diff session: policy.yaml",
    ),
    "policy schema": ("sigwrap policy schema > policy.schema.json",),
    "policy explain": (
        "sigwrap policy explain -p ci -- git push --force",
        "sigwrap policy explain -- bash -c 'cd /tmp && git push'",
        "sigwrap policy explain --signal SIGTERM --target user",
    ),
    "policy init": ("sigwrap policy init",),
    "policy learn": (
        "sigwrap policy learn build -o learned.yaml",
        "sigwrap policy learn --new build > new.yaml",
    ),
    "policy try": ("sigwrap policy try ci build",),
    "policy pin": ("sigwrap policy pin git npm > pinned.yaml",),
}


def examples(command: str) -> str:
    """Return the end of a command's help; \\b keeps typer from joining the lines."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in EXAMPLES[command])])
