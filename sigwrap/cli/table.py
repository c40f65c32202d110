"""Every command: the module in this package that has it, and its line of help.

The lists of commands in `--help`, completion and the search for the nearest word need no more than
this, so a start imports the module of one command only.
"""

from __future__ import annotations

HIDDEN = ""
Rows = dict[str, tuple[str, str]]

COMMANDS: dict[str, Rows] = {
    "Run": {
        "run": ("run_command", "Run a command under supervision"),
    },
    "Look at sessions": {
        "sessions": ("sessions", "List, remove or recover sessions"),
        "report": ("report", "Show what happened in a session"),
        "replay": ("replay", "Replay the events of a session, or judge them by another policy"),
        "why": ("why", "Explain in one sentence how a process ended"),
        "query": ("query", "Query logs with SQL"),
        "export": ("export", "Export events as JSON lines, CSV, Prometheus metrics or SQLite"),
        "verify": ("verify", "Check that a log was not changed"),
    },
    "Approve and stop": {
        "approvals": ("approvals", "List open approval requests"),
        "approve": ("approvals", "Approve a request"),
        "deny": ("approvals", "Deny a request"),
        "watch": ("watch", "Watch, approve and stop sessions in the terminal"),
        "serve": ("serve", "Serve a web page to watch, approve and stop sessions"),
        "signal": ("signal", "Stop, continue or end a whole session"),
        "killswitch": ("killswitch", "End all your sessions and block new ones"),
    },
    "Policies": {
        "policy": ("policy.commands", "Write, check and explain policies"),
    },
    "Agents": {
        "hook": ("hook", "Judge an agent's tool call from standard input"),
        "install": ("install", "Add the sigwrap hook to an agent's settings"),
        "uninstall": ("install", "Remove the sigwrap hook from an agent's settings"),
    },
    "Set-up": {
        "doctor": ("doctor", "Check what sigwrap can do on this machine"),
        "completion": ("completion", "Print a completion script for a shell"),
        "link": ("link", "Link the program's other names in a directory"),
        "help": ("help", "Show a page of the documentation"),
        "man": ("man", "Print the manual page"),
    },
    HIDDEN: {
        "complete": ("completion", ""),
    },
}

SESSIONS: dict[str, Rows] = {
    "Commands": {
        "rm": ("sessions_removal", "Remove sessions with all their files, except running ones"),
        "prune": ("sessions_removal", "Remove old sessions, and sockets left by killed ones"),
        "recover": ("sessions_recovery", "Merge the log of a killed session into one file"),
    },
}

POLICY: dict[str, Rows] = {
    "Commands": {
        "list": ("policy.reading", "List shipped policies and policy files"),
        "check": ("policy.reading", "Check policies for errors and doubtful rules"),
        "show": ("policy.reading", "Print a policy as it takes effect"),
        "diff": ("policy.reading", "Compare the effects of two policies"),
        "schema": ("policy.reading", "Print the JSON Schema of policies"),
        "explain": ("policy.judging", "Explain which rule decides, and why"),
        "test": ("policy.judging", "Run the tests of a policy"),
        "init": ("policy.writing", "Write a first policy for this project"),
        "suggest": ("policy.writing", "Print rules for actions that a session denied"),
        "generate": ("policy.writing", "Print a policy from the actions of sessions"),
        "pin": ("policy.writing", "Print rules that deny changed tools"),
    },
}
