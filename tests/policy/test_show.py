"""A policy as it takes effect, written as a person would."""

from __future__ import annotations

import json

import pytest

from sigwrap.policy.tools.show import policy_text
from sigwrap.text import printable
from tests.policy.conftest import Parse

SHOWN = """\
version: 1
name: whole
description: |-
  everything,
  on two lines
fallback: warn
defaults:
  command: audit
  signal: absorb
  file: deny
command_rules:
- name: c
  description: why
  commands: [/opt/bin/*, git]
  args: []
  flags: [r, force]
  args_patterns: [^x]
  subcommands: [push, '']
  depth:
    min: 1
    max: 3
  sha256: [%s]
  not_sha256: [cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd]
  truncated: false
  traced: true
  decision: redirect
  message: not for you
  redirect_to:
    command: /bin/echo
    args: ['no']
    append_args: true
    env:
      GITHUB_TOKEN: ${SIGWRAP_HOST:GITHUB_TOKEN}
    via: stub
    record: true
- name: plain
  commands: ['*']
  decision: deny
  on: kill
signal_rules:
- name: s
  signals: [SIGHUP, SIGRTMIN+2]
  target:
  - children
  - type: user
    pattern: x
  - type: process
    pattern: postgres*
  - type: pid_range
    min: 1
    max: 100
  decision: redirect
  redirect_to:
    signal: SIGTERM
  fallback: audit
- name: quiet
  signals: ['@all']
  target: [self, user]
  decision: allow
  log: false
- name: deaf
  signals: [SIGTERM]
  target: [agent, peers]
  handled: false
  decision: deny
file_rules:
- name: f
  paths: [/x/**]
  operations: [read, write]
  decision: deny
- name: m
  paths: [/c]
  operations: [create]
  decision: allow
  make_missing: true
network_rules:
- name: n
  destinations: ['*']
  ports: [443]
  decision: approve
  message: ask
env_policy:
  remove: ['*_KEY']
  keep: [API_KEY]
limits:
  max_depth: 8
  at_fork: true
  wall_time: 7200
  cpu_time: 90
  memory: 512
session:
  mounts: false
trust:
  path_shadow: deny
on:
  loop:
    same_exec: 25
    within: 60
    action: stop
  drift: kill
  boundary: kill
""" % ("ab" * 32)


def test_it_is_written_as_a_person_would(parse: Parse) -> None:
    assert policy_text(parse(SHOWN)) + "\n" == SHOWN


@pytest.mark.parametrize(
    "sections", ["", "trust: {path_shadow: audit}\n", "limits: {max_depth: 0}\n"]
)
def test_what_changes_nothing_stays_out(parse: Parse, sections: str) -> None:
    text = policy_text(parse(f"version: 1\nname: x\n{sections}"))
    assert text == "version: 1\nname: x\ndefaults:\n  command: deny\n  signal: deny"


def test_what_it_extends_is_said_in_a_comment(parse: Parse) -> None:
    bases = {
        "b": "version: 1\nname: b\nextends: c\n",
        "c": "version: 1\nname: c\nlimits: {max_depth: 3}\n",
    }
    text = policy_text(parse("version: 1\nname: a\nextends: b\n", bases))
    assert text.startswith("# a extends b extends c\nversion: 1\nname: a\n")
    assert text.endswith("limits:\n  max_depth: 3")


@pytest.mark.parametrize(
    "text",
    [
        "\u202erm\u2066",
        "bell \x07 \x1b[2J",
        "one\ntwo\u202e\nthree",
        "'\"\\\u202e",
        "long " * 40 + "\u202e",
        "a: b\u202e #",
    ],
)
def test_what_a_terminal_would_obey_is_escaped_and_loads_as_it_was(parse: Parse, text: str) -> None:
    quoted = json.dumps(text)
    rule = f"{{name: r, description: {quoted}, commands: [{quoted}], decision: deny}}"
    policy = parse(f"version: 1\nname: x\ncommand_rules:\n- {rule}\n")
    shown = policy_text(policy)
    assert all(line == printable(line) for line in shown.split("\n"))
    (again,) = parse(shown).command_rules
    assert (again.description, again.commands) == (
        policy.command_rules[0].description,
        policy.command_rules[0].commands,
    )
    assert again.commands == (text,)
