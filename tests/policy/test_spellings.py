"""The same command by another spelling is judged as the tool that rules name, too."""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.request import Action
from sigwrap.policy.judge.spellings import other_spelling
from sigwrap.policy.tools.cases import command_request
from tests.policy.conftest import MakeEngine


@pytest.mark.parametrize(
    ("line", "spelling"),
    [
        ("git-push -f", "git push -f"),
        ("git-", None),
        ("git push", None),
        ("docker-compose push", "docker compose push"),
        ("corepack pnpm add x", "pnpm add x"),
        ("corepack", None),
        ("python3 -m pip install x", "pip install x"),
        ("python3.11 -Im pip list", "pip list"),
        ("python -mpip list", "pip list"),
        ("python -W error -X dev -m pip list", "pip list"),
        ("python --check-hash-based-pycs always -m pip", "pip"),
        ("python -Wm x", None),
        ("python -c x -m pip", None),
        ("python -m", None),
        ("python", None),
        ("python -m pip._internal.main x", "pip x"),
        ("python a.py -m pip", None),
        ("python /usr/bin/pip3.11 install x", "pip install x"),
        ("python /lib/pip/ install x", "pip install x"),
        ("python -I /lib/pip/__main__.py install x", "pip install x"),
        ("python pip/__pip-runner__.py install x", "pip install x"),
        ("python pip.pyz install x", "pip install x"),
        ("python a/__main__.py install x", None),
        ("python -m runpy pip install x", "pip install x"),
        ("python -mrunpy pip.__main__ install x", "pip install x"),
        ("python -m runpy", None),
        ("python -", None),
        ("node --require a npm-cli.js i", "npm i"),
        ("node -r ./x /usr/bin/npx y", "npx y"),
        ("node --title x npm-cli.js publish", "npm publish"),
        ("node --disable_warning X --env-file .env --watch npm-cli.js i", "npm i"),
        ("node --env-file=.env npm-cli.js i", "npm i"),
        ("node --title npm-cli.js index.js i", None),
        ("node -- npm-cli.js i", "npm i"),
        ("node /lib/npm/bin/npm-cli i", "npm i"),
        ("node /lib/npm/bin/npx-cli y", "npx y"),
        ("node /lib/npm/bin/.. i", "npm i"),
        ("node /lib/npm/ i", "npm i"),
        ("node ../npm/index.js i", "npm i"),
        ("node npm/index i", "npm i"),
        ("node bundle/index.js i", None),
        ("node index.js", None),
        ("node", None),
        ("ruby /usr/bin/gem push x", "gem push x"),
        ("ruby -I lib -r x gem3.1 push x", "gem push x"),
        ("php -d memory_limit=-1 /usr/bin/composer require x", "composer require x"),
        ("ls -m pip", None),
        ("lvm vgremove x", "vgremove x"),
    ],
)
def test_spellings(line: str, spelling: str | None) -> None:
    argv = line.split()
    expected = None if spelling is None else tuple(spelling.split())
    assert other_spelling(argv[0], argv) == expected


def test_some_files_go_by_what_they_are_called_as() -> None:
    """`exec -a git-push git --force` pushes, and systemctl called reboot does that."""
    assert other_spelling("git", ["git-push", "-f"]) == ("git", "push", "-f")
    assert other_spelling("git", ["/x/git-push", "-f"]) == ("git", "push", "-f")
    assert other_spelling("git", ["x", "push"]) == ("x", "push")
    assert other_spelling("git", ["git", "push"]) is None
    assert other_spelling("git", []) is None
    assert other_spelling("systemctl", ["reboot"]) == ("reboot",)


def test_a_spelling_counts_only_where_a_rule_names_it(engine: MakeEngine) -> None:
    decide = engine(
        "command_rules:\n"
        "  - {name: py, commands: [python3], decision: allow}\n"
        "  - {name: pip, commands: [pip], subcommands: [install], decision: deny}\n"
    ).decide_command
    assert decide(command_request(["python3", "-m", "pip", "list"])).action is Action.ALLOW
    assert decide(command_request(["python3", "-m", "pytest"])).action is Action.ALLOW
    assert decide(command_request(["python3", "-m", "pip", "install"])).rule == "pip"
