"""The same command by another spelling: `git-push` is `git push`, `python3 -m pip` is `pip`.

Rules name the tool. Another spelling is judged as the tool as well, where a rule names that.
"""

from __future__ import annotations

from collections.abc import Sequence
from posixpath import normpath

_DASHED = {"git-": "git", "docker-": "docker"}
_PYTHON_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})
# Options of node 20 to 26 after which a script may still follow.
_NODE_WITH_VALUE = frozenset(
    "-r --require --import -C --conditions --loader --experimental-loader --title --env-file "
    "--env-file-if-exists --disable-warning --disable-proto --unhandled-rejections --input-type "
    "--dns-result-order --diagnostic-dir --redirect-warnings --inspect-port --debug-port "
    "--inspect-publish-uid --icu-data-dir --openssl-config --tls-cipher-list --tls-keylog "
    "--secure-heap --secure-heap-min --security-revert --security-reverts --use-largepages "
    "--v8-pool-size --max-http-header-size --max-old-space-size-percentage "
    "--network-family-autoselection-attempt-timeout --localstorage-file --snapshot-blob "
    "--build-snapshot-config --build-sea --allow-fs-read --allow-fs-write --policy-integrity "
    "--cpu-prof-dir --cpu-prof-interval --cpu-prof-name --heap-prof-dir --heap-prof-interval "
    "--heap-prof-name --heapsnapshot-near-heap-limit --heapsnapshot-signal --report-dir "
    "--report-directory --report-filename --report-signal --trace-event-categories "
    "--trace-event-file-pattern --trace-require-module --watch-path --watch-kill-signal "
    "--vfs-load --vfs-mount --experimental-config-file --experimental-default-type "
    "--experimental-package-map --experimental-policy --experimental-sea-config "
    "--experimental-specifier-resolution --es-module-specifier-resolution "
    "--experimental-test-isolation --experimental-test-tag-filter --test-concurrency "
    "--test-coverage-branches --test-coverage-exclude --test-coverage-functions "
    "--test-coverage-include --test-coverage-lines --test-global-setup --test-isolation "
    "--test-name-pattern --test-random-seed --test-reporter --test-reporter-destination "
    "--test-rerun-failures --test-shard --test-skip-pattern --test-timeout".split()
)
_RUNNERS_WITH_VALUE = {
    "node": _NODE_WITH_VALUE,
    "nodejs": _NODE_WITH_VALUE,
    "bun": _NODE_WITH_VALUE,
    "deno": _NODE_WITH_VALUE,
    "ruby": frozenset({"-C", "-E", "-I", "-r"}),
    "php": frozenset({"-c", "-d", "-z"}),
    "perl": frozenset({"-I"}),
}
_STARTERS = frozenset({"corepack", "lvm"})
_GO_BY_ARGV0 = frozenset({"git", "systemctl"})  # their name is argv[0], not that of the file
# The scripts of a tool that an interpreter may run; node finds a file without its ending too.
_SCRIPTS_OF = {
    "npm": "npm-cli.js npm-cli npm npm/index.js npm/index",
    "npx": "npx-cli.js npx-cli npx",
    "yarn": "yarn.js yarn",
    "pnpm": "pnpm.cjs pnpm.js pnpm",
    "pip": "pip pip3 pip.pyz pip/__main__.py pip/__pip-runner__.py",
    "pipx": "pipx pipx/__main__.py",
    "poetry": "poetry poetry/__main__.py",
    "twine": "twine twine/__main__.py",
    "conda": "conda",
    "gem": "gem",
    "bundle": "bundle",
    "composer": "composer.phar composer",
    "gcloud": "gcloud.py",
}
_SCRIPTS = {script: tool for tool, names in _SCRIPTS_OF.items() for script in names.split()}


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
    if plain in _RUNNERS_WITH_VALUE:
        return _script(argv, _first_operand(argv, _RUNNERS_WITH_VALUE[plain]))
    return None


def _python(argv: Sequence[str]) -> tuple[str, ...] | None:
    """Read `-m MODULE`, which ends the options: also as `-Im MODULE` or `-mpip`."""
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
                    words = [attached, *rest] if attached else [*rest]
                    return _module(words)
                if letter == "c":
                    return None
                if letter in "WX":
                    break
        position += 1
    return None


def _module(words: Sequence[str]) -> tuple[str, ...] | None:
    at = 0
    while at < len(words) and words[at] == "runpy":  # it runs the module that it is given
        at += 1
    if at == len(words):
        return None
    name = words[at].removesuffix(".__main__")
    return ("pip" if name.startswith("pip.") else name, *words[at + 1 :])


def _first_operand(argv: Sequence[str], with_value: frozenset[str]) -> int:
    position = 1
    while position < len(argv) and argv[position].startswith("-"):
        option = argv[position]
        position += 1
        if option == "--":
            break
        # Node takes an underscore for a hyphen.
        if option in with_value or option.replace("_", "-") in with_value:
            position += 1
    return position


def _script(argv: Sequence[str], position: int) -> tuple[str, ...] | None:
    """Return the tool that a script is: `npm/bin/npm-cli.js`, or the directory `pip/`."""
    if position >= len(argv):
        return None
    folders, _, name = normpath(argv[position]).rpartition("/")
    tool = (
        _SCRIPTS.get(name)
        or _SCRIPTS.get(name.rstrip("0123456789."))
        or _SCRIPTS.get(f"{folders.rpartition('/')[2]}/{name}")
    )
    return None if tool is None else (tool, *argv[position + 1 :])
