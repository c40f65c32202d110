"""Commands that a transparent wrapper runs, read from its arguments.

Usually this only decides earlier: the exec by `env` or `xargs` is mediated too. It matters where no
exec follows: busybox runs its applets itself, and ld.so maps a program. The tables hold the options
that take a value; an unknown option counts as a flag. `sh -c` strings are not read: their execs are
judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sigwrap.bare import NamedTuple
from sigwrap.policy.judge.spellings import other_spelling
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
