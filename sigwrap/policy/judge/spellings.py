"""The same command by another spelling: `git-push` is `git push`, `python3 -m pip` is `pip`.

Rules name the tool. Another spelling is judged as the tool as well, where a rule names that.
"""

from __future__ import annotations

from collections.abc import Sequence

_DASHED = {"git-": "git", "docker-": "docker"}
_PYTHON_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})
_NODE_WITH_VALUE = frozenset(
    {"-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions"}
)
_STARTERS = frozenset({"corepack", "lvm"})
_GO_BY_ARGV0 = frozenset({"git", "systemctl"})  # whatever the file is called
# Scripts that an interpreter may be given, and the tools that they are.
_SCRIPTS = {
    "npm-cli.js": "npm",
    "npx-cli.js": "npx",
    "npm": "npm",
    "npx": "npx",
    "yarn.js": "yarn",
    "yarn": "yarn",
    "pnpm.cjs": "pnpm",
    "pnpm": "pnpm",
    "pip": "pip",
    "pip3": "pip",
    "pipx": "pipx",
    "poetry": "poetry",
    "twine": "twine",
    "conda": "conda",
    "gem": "gem",
    "bundle": "bundle",
    "composer.phar": "composer",
    "composer": "composer",
    "gcloud.py": "gcloud",
}
_SCRIPT_RUNNERS = frozenset({"node", "nodejs", "ruby", "php", "perl", "bun", "deno"})


def other_spelling(name: str, argv: Sequence[str]) -> tuple[str, ...] | None:
    if name in _GO_BY_ARGV0 and argv:
        called = argv[0].rpartition("/")[2]
        if called == name:
            return None
        return other_spelling(called, argv) or (called, *argv[1:])
    for prefix, tool in _DASHED.items():
        if name.startswith(prefix) and len(name) > len(prefix):
            return (tool, name[len(prefix) :], *argv[1:])
    if name in _STARTERS and len(argv) > 1:
        return tuple(argv[1:])
    plain = name.rstrip("0123456789.")
    if plain in ("python", "pypy"):
        return _python(argv)
    if plain in _SCRIPT_RUNNERS:
        return _script(argv, _first_operand(argv, _NODE_WITH_VALUE))
    return None


def _python(argv: Sequence[str]) -> tuple[str, ...] | None:
    """`-m MODULE` ends the options, attached to others (`-Im`) or to its value (`-mpip`)."""
    position = 1
    while position < len(argv):
        argument = argv[position]
        if argument in _PYTHON_WITH_VALUE:
            position += 2
            continue
        if not argument.startswith("-") or argument == "-":
            return _script(argv, position)
        if not argument.startswith("--"):
            for at, letter in enumerate(argument[1:], start=1):
                if letter == "m":
                    attached = argument[at + 1 :]
                    rest = argv[position + 1 :]
                    words = (attached, *rest) if attached else tuple(rest)
                    return (_module(words[0]), *words[1:]) if words else None
                if letter == "c":
                    return None
                if letter in "WX":
                    break
        position += 1
    return None


def _module(name: str) -> str:
    plain = name.removesuffix(".__main__")
    return "pip" if plain.startswith("pip.") else plain


def _first_operand(argv: Sequence[str], with_value: frozenset[str]) -> int:
    position = 1
    while position < len(argv) and argv[position].startswith("-"):
        position += 2 if argv[position] in with_value else 1
    return position


def _script(argv: Sequence[str], position: int) -> tuple[str, ...] | None:
    if position >= len(argv):
        return None
    name = argv[position].rpartition("/")[2]
    tool = _SCRIPTS.get(name) or _SCRIPTS.get(name.rstrip("0123456789."))
    return None if tool is None else (tool, *argv[position + 1 :])
