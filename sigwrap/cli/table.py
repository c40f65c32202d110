"""Every command: the module in this package that has it, and its line of help. Old names.

The lists of commands in `--help`, completion and the search for the nearest word need no more than
this, so a start imports the module of one command only.
"""

from __future__ import annotations

HIDDEN = ""
Rows = dict[str, tuple[str, str]]

COMMANDS: dict[str, Rows] = {
    "Run": {"run": ("run_command", "Run a command under supervision")},
    "Look at sessions": {
        "sessions": ("sessions", "List, remove or recover sessions"),
        "report": ("report", "Show what happened in a session"),
        "replay": ("replay", "Replay the events of a session"),
        "why": ("why", "Explain in one sentence how a process ended"),
        "query": ("query", "Query logs with SQL"),
        "export": ("export", "Export events as JSON lines, CSV, Prometheus, SQLite or OTLP"),
        "ship": ("ship", "Put sessions that have ended into a folder or a bucket"),
        "verify": ("verify", "Check that a log was not changed"),
    },
    "Many machines": {
        "lake": ("lake", "Read the sessions of many machines in one place"),
    },
    "Approve and stop": {
        "approve": ("approvals", "Approve a request"),
        "deny": ("approvals", "Deny a request"),
        "watch": ("watch", "Watch, approve and stop sessions in the terminal"),
        "serve": ("serve", "Serve a web page to watch, approve and stop sessions"),
        "pause": ("signal", "Freeze the processes of a session, until sigwrap resume"),
        "resume": ("signal", "Continue a paused session"),
        "stop": ("signal", "End a session cleanly"),
        "signal": ("signal", "Send an agent signal to a whole session"),
        "killswitch": ("killswitch", "End all your sessions and block new ones"),
    },
    "Policies": {
        "policy": ("policy", "Write, check and explain policies"),
    },
    "Agents": {
        "hook": ("hook", "Judge an agent's tool calls before they run"),
    },
    "Set-up": {
        "doctor": ("doctor", "Check what sigwrap can do on this machine"),
        "completion": ("completion", "Print a completion script for a shell"),
        "link": ("link", "Link the program's other names in a directory"),
        "help": ("help", "Show a page of the documentation"),
        "man": ("help", "Print the manual page"),
    },
    HIDDEN: {
        "complete": ("completion", ""),
    },
}

POLICY: dict[str, Rows] = {
    "Commands": {
        "list": ("policy.reading", "List shipped policies and policy files"),
        "show": ("policy.reading", "Print a policy as it takes effect"),
        "diff": ("policy.reading", "Compare two policies as they take effect"),
        "schema": ("policy.reading", "Print the JSON Schema of policies"),
        "check": ("policy.reading", "Check policies for mistakes, and run their tests"),
        "try": ("policy.reading", "Show what a policy would have decided in a session"),
        "explain": ("policy.explaining", "Explain which rule decides, and why"),
        "init": ("policy.writing", "Write a first policy for this project"),
        "pin": ("policy.writing", "Print a policy that denies changed tools"),
        "learn": ("policy.writing", "Print rules for denied actions of a session"),
    },
}

# They keep working. The longer one of two comes first.
OLD_NAMES = {
    "approvals list": "watch --format text",
    "approvals": "watch --format text",
    "install": "hook install",
    "uninstall": "hook uninstall",
    "policy generate": "policy learn --new",
    "policy replay": "policy try",
    "policy suggest": "policy learn",
    "policy test": "policy check",
}
