"""sigwrap completion: the script that makes a shell complete sigwrap's words.

The script asks `sigwrap complete` at each Tab, which prints one word a line, with a TAB and what it
is behind it. typer's own scripts have the shell evaluate what they are told; a session may be
called anything, so ours only ever reads lines. What is behind `--` is the command's own, and the
shell completes that without us.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from sigwrap.agent import AgentSignal
from sigwrap.cli.examples import examples
from sigwrap.cli.options import store_folder
from sigwrap.cli.output import out
from sigwrap.escape import printable, shell_words
from sigwrap.run.settings import AGENTS
from sigwrap.start.policy_files import SHIPPED
from sigwrap.store.catalog import recent_sessions

_MOST_SESSIONS = 100
_HELP_CHARACTERS = 60

Offer = tuple[str, str]


class Shell(Enum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_SCRIPTS = {
    Shell.BASH: r"""_sigwrap() {
    local i IFS=$'\n' part word="${COMP_WORDS[COMP_CWORD]}"
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            if declare -F _command_offset >/dev/null; then
                _command_offset $((i + 1))
            elif ((COMP_CWORD == i + 1)); then
                mapfile -t COMPREPLY < <(compgen -c -- "$word")
            else
                compopt -o default
            fi
            return
        fi
    done
    # Bash takes --store=X for three words, and completes the last of them.
    local line rest=$COMP_LINE last=
    local -a typed=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        part=${COMP_WORDS[i]}
        if [[ $rest != [[:space:]]* && ($part == [=:@]* || $last == *[=:@]) ]]; then
            last=${typed[-1]}$part
            typed[-1]=$last
        else
            last=$part
            typed+=("$part")
        fi
        rest=${rest#"${rest%%[![:space:]]*}"}
        rest=${rest#"$part"}
    done
    [[ $word == [=:@]* ]] && word=
    local before=${last%"$word"}
    while IFS= read -r line; do
        line=${line%%$'\t'*}
        [[ $line == "$last"* ]] && COMPREPLY+=("$(printf %q "${line#"$before"}")")
    done < <("${COMP_WORDS[0]}" complete -- "${typed[@]:1}" 2>/dev/null)
    ((${#COMPREPLY[@]})) || compopt -o default
}
complete -o nosort -F _sigwrap sigwrap 2>/dev/null || complete -F _sigwrap sigwrap""",
    Shell.ZSH: r"""#compdef sigwrap
_sigwrap() {
    local -a words_of_it shown
    local line at=${words[(i)--]}
    if ((at < CURRENT)); then
        shift $at words
        ((CURRENT -= at))
        _normal
        return
    fi
    while IFS= read -r line; do
        words_of_it+=("${line%%$'\t'*}")
        shown+=("${line//$'\t'/  }")
    done < <("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    if ((${#words_of_it})); then
        compadd -V sigwrap -l -d shown -a words_of_it
    else
        compset -P '--*='
        _files
    fi
}
if [[ ${funcstack[1]} == _sigwrap ]]; then
    _sigwrap "$@"
elif (($+functions[compdef])); then
    compdef _sigwrap sigwrap
fi""",
    Shell.FISH: r"""function __sigwrap_words
    set -l word (commandline -ct)
    set -l words (commandline -opc)
    set -l found ($words[1] complete -- $words[2..-1] "$word" 2>/dev/null)
    if set -q found[1]
        string join \n -- $found
    else
        set -l option (string match -r -- '^--[^=]*=' $word)
        set -l file (string replace -r -- '^--[^=]*=' '' $word)
        __fish_complete_path "$file" | string replace -r -- '^' "$option"
    end
end
function __sigwrap_before_dashes
    not contains -- -- (commandline -opc)
end
function __sigwrap_command
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    complete -C (string join ' ' -- (string escape -- $words[(math $at + 1)..-1]) (commandline -ct))
end
complete -c sigwrap -f
complete -c sigwrap -n __sigwrap_before_dashes -k -a '(__sigwrap_words)'
complete -c sigwrap -n 'not __sigwrap_before_dashes' -a '(__sigwrap_command)'""",
}


def register(app: typer.Typer) -> None:
    app.command(epilog=examples("completion"))(completion)
    app.command(
        hidden=True,
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
    )(complete)


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="Shell to complete for")],
) -> None:
    """Print a completion script for a shell."""
    out(_SCRIPTS[shell])


def complete(
    context: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="-- WORDS...")] = None,
) -> None:
    """What the last of these words may become, for a shell; an error is nothing to offer."""
    *before, word = words or [""]
    try:
        offers = list(_offers(context.find_root().command, before, word))
    except Exception:  # it would be in the middle of somebody's prompt
        return
    for offer, what in offers:
        if offer.startswith(word) and printable(offer) == offer:
            shown = printable(" ".join(what.split()))[:_HELP_CHARACTERS]
            out(f"{offer}\t{shown}" if shown else offer)


def _offers(root: Any, before: list[str], word: str) -> Iterator[Offer]:
    command, rest = root, list(before)
    while rest and (inner := _inner(command, rest[0])) is not None:
        command, rest = inner, rest[1:]
    options = _options(root.commands["run"] if command is root else command)
    if rest and (asked := options.get(rest[-1])) is not None and _takes_value(asked):
        yield from _values(asked.name, asked.type, rest[:-1], options)
        return
    name, equals, _ = word.partition("=")
    if equals and (asked := options.get(name)) is not None and _takes_value(asked):
        values = _values(asked.name, asked.type, rest, options)
        yield from ((f"{name}={value}", what) for value, what in values)
        return
    if word.startswith("-"):
        yield from ((name, each.help or "") for name, each in options.items())
        if command is root:
            yield "--", "the command follows"
            yield from ((name, each.help or "") for name, each in _options(root).items())
        return
    if (command is root and not rest) or (hasattr(command, "commands") and not rest):
        for name, each in command.commands.items():
            if not each.hidden:
                yield name, each.get_short_help_str(_HELP_CHARACTERS)
        if command is root:
            yield from ((name, "run this agent") for name in AGENTS)
        return
    yield from _arguments(command, rest, options)


def _inner(command: Any, word: str) -> Any:
    return getattr(command, "commands", {}).get(word)


def _options(command: Any) -> dict[str, Any]:
    return {
        name: each
        for each in command.params
        if each.param_type_name == "option" and not each.hidden
        for name in (*each.opts, *each.secondary_opts)
    }


def _takes_value(option: Any) -> bool:
    return not option.is_flag


def _without_options(words: list[str], options: dict[str, Any]) -> list[str]:
    found, skips = [], False
    for word in words:
        if skips:
            skips = False
        elif word.startswith("-"):
            skips = word in options and _takes_value(options[word])
        else:
            found.append(word)
    return found


def _values(name: str, kind: Any, rest: list[str], options: dict[str, Any]) -> Iterable[Offer]:
    if (choices := getattr(kind, "choices", None)) is not None:
        return [(str(getattr(each, "value", each)), "") for each in choices]
    by_name: dict[str, Callable[[], Iterable[Offer]]] = {
        "policy": _policies,
        "extends": _policies,
        "signal": lambda: ((each.name, "") for each in AgentSignal),
        "rule": lambda: _rules(_store(rest), _without_options(rest, options)),
    }
    return by_name.get(name, lambda: ())()


def _arguments(command: Any, rest: list[str], options: dict[str, Any]) -> Iterator[Offer]:
    position = len(_without_options(rest, options))
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    if not arguments:
        return
    argument = arguments[min(position, len(arguments) - 1)]
    if position >= len(arguments) and argument.nargs != -1:
        return
    match argument.name, command.name:
        case (_, "signal"):
            if position == 0:
                yield from _sessions(_store(rest), only_running=True)
            yield from ((each.name, "") for each in AgentSignal)
        case ("session" | "sessions", _):
            yield from _sessions(_store(rest))
        case ("policy" | "files", _):
            yield from _policies()
        case _:
            yield from _values(argument.name, argument.type, rest, options)


def _store(words: list[str]) -> str:
    given = None
    for position, word in enumerate(words):
        if word == "--store" and position + 1 < len(words):
            given = words[position + 1]
        elif word.startswith("--store="):
            given = word.partition("=")[2]
    return store_folder(given if given is None else _unquoted(given))


def _unquoted(word: str) -> str:
    """As the shell would pass it on."""
    try:
        [found] = shlex.split(word)
    except ValueError:  # it is not closed yet, or not one word
        return word
    return os.path.expanduser(found) if word.startswith("~") else found


def _sessions(store: str, *, only_running: bool = False) -> Iterator[Offer]:
    """Names first, the latest first."""
    found = [
        file for file in recent_sessions(store, _MOST_SESSIONS) if file.running or not only_running
    ]
    names: dict[str, str] = {}
    for file in found:
        if file.name:
            names.setdefault(file.name, shell_words(file.command))
    yield from names.items()
    yield from ((file.id, shell_words(file.command)) for file in found)


def _policies() -> Iterator[Offer]:
    yield from ((name, "shipped") for name in SHIPPED)
    yield from ((str(path), "") for path in sorted(Path().glob("*.yaml")))


def _rules(store: str, sessions: list[str]) -> Iterator[Offer]:
    """Of the policy that the session had."""
    from sigwrap.store.catalog import open_session

    session = _unquoted(sessions[0]) if sessions else ""
    seen: dict[str, str] = {}
    for event in open_session(store, session).events():
        rule = event.payload.get("rule_name")
        if isinstance(rule, str) and rule:
            seen.setdefault(rule, "")
        if event.seq > _MOST_EVENTS:
            break
    yield from seen.items()


_MOST_EVENTS = 5_000
