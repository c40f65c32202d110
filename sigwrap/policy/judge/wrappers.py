"""Commands that a transparent wrapper runs, read from its arguments.

Usually this only decides earlier: the exec by `env` or `xargs` is mediated too. It matters where no
exec follows: busybox runs its applets itself, and ld.so maps a program. The tables hold the options
that take a value; an unknown option counts as a flag. `sh -c` strings are not read: their execs are
judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from posixpath import normpath

from sigwrap.bare import NamedTuple
from sigwrap.policy.judge.tools import options_of

MAX_WRAPPERS = 8


class Wrapped(NamedTuple):
    argv: tuple[str, ...]
    same_file: bool = False  # an applet in the wrapper's own file
    spelling: bool = False  # another spelling of the same command
    variables: tuple[str, ...] = ()  # set for it by the wrapper
    called: str = ""  # its argv[0], if that differs from the word by which it was found


# Wrappers, with the number of arguments before the command; their options are in tools.py.
_WRAPPERS = {
    **dict.fromkeys("env nice nohup stdbuf setsid ionice time xargs sudo doas".split(), 0),
    **dict.fromkeys("timeout chrt taskset chroot".split(), 1),
}
_SKIPS_ASSIGNMENTS = frozenset({"env", "sudo"})  # NAME=value before the command
_LOADER = "ld.so"
_LOADER_VARIABLES = {
    "--library-path": "LD_LIBRARY_PATH",
    "--audit": "LD_AUDIT",
    "--preload": "LD_PRELOAD",
}
_LOADER_NAMES = ("ld-", "ld.so", "ld64.so")
MULTICALL = frozenset({"busybox", "toybox", "coreutils"})
_OWN_SEARCH_PATH = frozenset({"sudo", "doas", "chroot"})
_MEANT_OTHERWISE = frozenset("\\\"'$#")  # by env -S


def unwrap(name: str, argv: Sequence[str]) -> tuple[Wrapped, ...]:
    """Return the wrapped commands, the outermost first."""
    return tuple(_unwrapped(name, tuple(argv)))


def _unwrapped(name: str, argv: tuple[str, ...]) -> Iterator[Wrapped]:
    for _ in range(MAX_WRAPPERS):
        wrapped = _inner(name, argv)
        if wrapped is None:
            return
        yield wrapped
        name = basename(wrapped.argv[0])
        argv = (wrapped.called or wrapped.argv[0], *wrapped.argv[1:])


def plain_words(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the command of `env X` or `env '-S X words'`.

    Empty if an option, a variable, a quote or an escape could change it.
    """
    words, rest = tuple(argv[1:2]), argv[2:]
    if words and words[0].startswith("-S"):
        text = words[0].removeprefix("-S")
        text = text.replace("\t", " ")  # env splits at both
        is_plain = text.isascii() and text.isprintable() and _MEANT_OTHERWISE.isdisjoint(text)
        words = tuple(text.split()) if is_plain else ()
    if not words or words[0].startswith("-") or "=" in words[0]:
        return ()
    return (*words, *rest)


def keeps_search_path(name: str, argv: Sequence[str]) -> bool:
    """Return whether the wrapper searches the PATH with which it was started."""
    if name == "env":
        return bool(plain_words(argv))
    return name not in _OWN_SEARCH_PATH and not is_loader(name)


def is_loader(name: str) -> bool:
    """Return whether this is the name of a dynamic loader."""
    return name.startswith(_LOADER_NAMES) and ".so" in name


def _inner(name: str, argv: tuple[str, ...]) -> Wrapped | None:
    if name in MULTICALL:
        return _applet(argv)
    if name == "env":
        argv = _split_string_expanded(argv)
    wrapper = _LOADER if is_loader(name) else name
    if wrapper not in _WRAPPERS and wrapper != _LOADER:
        spelling = other_spelling(name, argv)
        return Wrapped(argv=spelling, same_file=True, spelling=True) if spelling else None
    position = _command_position(wrapper, argv)
    inner = argv[position:]
    if not inner or not inner[0]:
        return None
    before = argv[1:position]
    called = dict(pairwise(before)).get("--argv0", "") if wrapper == _LOADER else ""
    return Wrapped(argv=inner, variables=_variables(wrapper, before), called=called)


def _variables(wrapper: str, before: Sequence[str]) -> tuple[str, ...]:
    if wrapper == _LOADER:
        options = (word.partition("=")[0] for word in before)
        return tuple(_LOADER_VARIABLES[word] for word in options if word in _LOADER_VARIABLES)
    if wrapper not in _SKIPS_ASSIGNMENTS:
        return ()
    assigned = (word.partition("=") for word in before if not word.startswith(("-", "=")))
    return tuple(name for name, _, value in assigned if value)


def _applet(argv: tuple[str, ...]) -> Wrapped | None:
    if not argv:
        return None
    # Only argv[0] tells which applet a link to busybox is. A login shell's begins with a hyphen.
    called = argv[0].removeprefix("-")
    applet = (called, *argv[1:]) if basename(called) not in MULTICALL else argv[1:]
    if not applet or not applet[0] or applet[0].startswith("-"):
        return None
    return Wrapped(argv=applet, same_file=True)


def _command_position(wrapper: str, argv: tuple[str, ...]) -> int:
    position, operands = 1, _WRAPPERS.get(wrapper, 0)
    with_value = options_of(wrapper).with_value
    options_over = False
    while position < len(argv):
        argument = argv[position]
        if not options_over and argument == "--":
            options_over = True
        elif not options_over and _takes_the_next(argument, with_value):
            position += 1
        elif not options_over and argument.startswith("-"):
            pass
        elif wrapper in _SKIPS_ASSIGNMENTS and "=" in argument:
            options_over = True
        elif operands:
            operands -= 1
        else:
            return position
        position += 1
    return position


def _takes_the_next(option: str, with_value: frozenset[str]) -> bool:
    """Return whether the next word is its value: `-n 1`, `-0n 1`, `--kill 5`."""
    if option.startswith("--"):
        return any(len(each) > 1 and each.startswith(option[2:]) for each in with_value)
    takes = [letter in with_value for letter in option[1:]] if option.startswith("-") else []
    return True in takes and takes.index(True) == len(takes) - 1


def _split_string_expanded(argv: tuple[str, ...]) -> tuple[str, ...]:
    for position, word in enumerate(argv):
        letters = word[1:].lstrip("iv0") if word.startswith("-") and position else ""
        argument = f"-{letters}" if letters.startswith("S") else word  # `-ivS`, too
        name, has_value, value = argument.partition("=")
        is_long = name.startswith("--s") and "--split-string".startswith(name)
        if argument == "-S" or (is_long and not has_value):
            text, rest = "".join(argv[position + 1 : position + 2]), argv[position + 2 :]
        elif is_long or argument.startswith("-S"):
            text = value if is_long else argument.removeprefix("-S")
            rest = argv[position + 1 :]
        elif position and not argument.startswith("-") and "=" not in argument:
            return argv
        else:
            continue
        import shlex

        try:
            words = shlex.split(text)
        except ValueError:
            return argv[:1]  # env refuses it too
        return (*argv[:position], *words, *rest)
    return argv


def basename(path: str) -> str:
    return path.rpartition("/")[2]


# The same command by another spelling: `git-push` is `git push`, `python3 -m pip` is `pip`.

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
