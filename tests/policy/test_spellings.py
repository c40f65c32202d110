"""The same command by another spelling is judged as the tool that rules name, too."""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.wrappers import other_spelling


@pytest.mark.parametrize(
    ("line", "spelling"),
    [
        ("git-", None),
        ("git push", None),
        ("corepack", None),
        ("python3.11 -Im pip list", "pip list"),
        ("python -W error -X dev -m pip list", "pip list"),
        ("python --check-hash-based-pycs always -m pip", "pip"),
        ("python -Wm x", None),
        ("python -c x -m pip", None),
        ("python -m", None),
        ("python", None),
        ("python -m pip._internal.main x", "pip x"),
        ("python a.py -m pip", None),
        ("python a/__main__.py install x", None),
        ("python -m runpy pip install x", "pip install x"),
        ("python -mrunpy pip.__main__ install x", "pip install x"),
        ("python -m runpy", None),
        ("python -", None),
        ("node --require a npm-cli.js i", "npm i"),
        ("node --disable_warning X --env-file .env --watch npm-cli.js i", "npm i"),
        ("node --title npm-cli.js index.js i", None),
        ("node -- npm-cli.js i", "npm i"),
        ("node /lib/npm/ i", "npm i"),
        ("node ../npm/index.js i", "npm i"),
        ("node bundle/index.js i", None),
        ("node index.js", None),
        ("node", None),
        ("ruby -I lib -r x gem3.1 push x", "gem push x"),
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
