"""sigwrap completion: a script by which a shell completes sigwrap's words.

At each Tab the script asks `sigwrap complete`, which prints a word a line, followed by a tab and
its help. typer's own scripts let the shell evaluate the answer, and a session may have any name, so
these only read lines. The shell itself completes the command after `--`.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Literal

import typer

from sigwrap.cli.group import App
from sigwrap.cli.options import store_folder
from sigwrap.cli.output import out
from sigwrap.cli.run_options import BEFORE_A_COMMAND
from sigwrap.session.settings import AGENTS
from sigwrap.text import printable, shell_words

_MOST_SESSIONS = 100
_HELP_CHARACTERS = 60

Offer = tuple[str, str]

_SCRIPTS = {
    "bash": r"""_sigwrap() {
    local i line word=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            if declare -F _command_offset >/dev/null; then
                _command_offset $((i + 1))
            else
                mapfile -t COMPREPLY < <(compgen -A command -A file -- "$word")
            fi
            return
        fi
    done
    while IFS=$'\t' read -r line _; do
        COMPREPLY+=("$(printf %q "$line")")
    done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    ((${#COMPREPLY[@]})) || compopt -o default
}
complete -o nosort -F _sigwrap sigwrap 2>/dev/null || complete -F _sigwrap sigwrap""",
    "zsh": r"""#compdef sigwrap
_sigwrap() {
    local line at=${words[(i)--]}
    local -a found shown
    if ((at < CURRENT)); then
        shift $at words
        ((CURRENT -= at))
        _normal
        return
    fi
    while IFS= read -r line; do
        found+=("${line%%$'\t'*}")
        shown+=("${line//$'\t'/  }")
    done < <("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    compset -P '--*='
    compadd -V sigwrap -l -d shown -a found || _files
}
if [[ ${funcstack[1]} == _sigwrap ]]; then
    _sigwrap "$@"
elif (($+functions[compdef])); then
    compdef _sigwrap sigwrap
fi""",
    "fish": r"""function __sigwrap_words
    set -l word (commandline -ct)
    set -l words (commandline -opc)
    set -l option (string match -r -- '^--[^=]*=' $word)
    set -l found ($words[1] complete -- $words[2..-1] "$word" 2>/dev/null)
    or set found (__fish_complete_path (string replace -r -- '^--[^=]*=' '' $word))
    string replace -r -- '^' "$option" $found
end
function __sigwrap_has_dashes
    contains -- -- (commandline -opc)
end
function __sigwrap_command
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    complete -C (string join ' ' -- (string escape -- $words[(math $at + 1)..-1]) (commandline -ct))
end
complete -c sigwrap -f
complete -c sigwrap -n 'not __sigwrap_has_dashes' -k -a '(__sigwrap_words)'
complete -c sigwrap -n __sigwrap_has_dashes -a '(__sigwrap_command)'""",
}


app = App()


@app.command()
def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"],
        typer.Argument(metavar="SHELL", help="Shell to complete for: bash, zsh or fish"),
    ],
) -> None:
    """Print a completion script for a shell."""
    out(_SCRIPTS[shell])


@app.command(
    hidden=True,
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
)
def complete(
    context: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="-- WORDS...")] = None,
) -> int:
    """Print what the last of these words may become; status 1 without any."""
    *before, word = [_unquoted(each) for each in words or [""] if each != "="]
    try:
        offers = list(_offers(context.find_root().command, before, word))
    except Exception:  # its message would appear in the middle of the user's line
        return 1
    for offer, line in offers:
        shown = printable(" ".join(line.split()))[:_HELP_CHARACTERS]
        out(f"{offer}\t{shown}" if shown else offer)
    return 0 if offers else 1


def _offers(root: Any, before: list[str], word: str) -> Iterator[Offer]:
    from typer._click.shell_completion import _resolve_context, _resolve_incomplete

    first = (before or [word])[0]
    if first.startswith("-") and (before or "=" in word) and first not in BEFORE_A_COMMAND:
        before = ["run", *before]
    # typer reads no argument of a line that ends in an option without its value.
    lacks_value = [each for each in before[-1:] if each.startswith("-") and "=" not in each]
    given = before[: len(before) - len(lacks_value)]
    context = _resolve_context(root, {}, "sigwrap", given)
    asked, word = _resolve_incomplete(context, before, word)
    if hasattr(asked, "opts") and asked.name in _VALUES:
        found = _VALUES[asked.name](context)
    else:
        found = ((each.value, each.help or "") for each in asked.shell_complete(context, word))
    for offer, line in found:
        if offer.startswith(word) and printable(offer) == offer:
            yield offer, line


def _unquoted(word: str) -> str:
    """Return a word as the shell would pass it on; an unfinished one as it is."""
    try:
        [found] = shlex.split(word)
    except ValueError:
        return word
    return os.path.expanduser(found) if word.startswith("~") else found


def _sessions(context: Any) -> Iterator[Offer]:
    """Yield names before ids, and the latest session first."""
    from sigwrap.log.catalog import recent_sessions

    found = recent_sessions(store_folder(context.params.get("store")), _MOST_SESSIONS)
    names = {file.name: shell_words(file.command) for file in reversed(found) if file.name}
    yield from reversed(names.items())
    yield from ((file.id, shell_words(file.command)) for file in found)


def _session_or_signal(context: Any) -> Iterator[Offer]:
    from sigwrap.agent import AgentSignal

    if not context.params.get("words"):
        yield from _sessions(context)
    yield from ((each.name, "") for each in AgentSignal)


def _policies(_context: Any) -> Iterator[Offer]:
    from sigwrap.start.policy_files import SHIPPED, files_here

    yield from ((name, "shipped") for name in SHIPPED)
    yield from ((name, "") for name in files_here())


def _topics(context: Any) -> Iterator[Offer]:
    from sigwrap.cli.help import topics

    yield from ((name, "") for name in topics())
    yield from context.find_root().command.words().items()


def _agents(context: Any) -> Iterator[Offer]:
    if context.info_name == "run":
        yield from ((name, "Run this agent") for name in AGENTS)


# By the name of an option or argument, whichever command has it.
_VALUES: dict[str, Callable[[Any], Iterable[Offer]]] = {
    "session": _sessions,
    "sessions": _sessions,
    "words": _session_or_signal,
    "policy": _policies,
    "policy_fallback": _policies,
    "files": _policies,
    "extends": _policies,
    "first": _policies,
    "second": _policies,
    "topic": _topics,
    "command": _agents,
}
