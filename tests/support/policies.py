"""A policy file for one test: everything else is allowed."""

from __future__ import annotations

from pathlib import Path

TRACING = "session: {tracing: allow}"


def policy(folder: Path, rules: str, *more: str) -> str:
    path = folder / "policy.yaml"
    lines = ["version: 1", "name: test", "defaults: {command: allow, signal: allow}", *more]
    path.write_text("\n".join(lines) + "\ncommand_rules:" + rules)
    path.chmod(0o644)
    return str(path)
