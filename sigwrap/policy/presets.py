"""How `sigwrap claude …` runs an agent, and what the agent's tool calls look like.

Nothing is judged by what is shown of a tool call.
"""

from __future__ import annotations

from collections.abc import Sequence

from sigwrap.bare import NamedTuple, re

COMMAND, QUOTED, PATH = "{command}", "{quoted}", "*"
_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})


class Preset(NamedTuple):
    name: str
    program: str
    policy: str
    install: str
    before: tuple[str, ...] = ()  # words before the user's own
    environment: tuple[tuple[str, str], ...] = ()  # where the user has not set them
    daemons: tuple[str, ...] = ()  # would do the work outside the session
    stop: str = ""  # the command that stops a daemon
    without_sandbox: tuple[str, ...] = ()  # each of these words disables the agent's own sandbox
    sandbox_words: tuple[str, ...] = ()  # the user's own choice starts with one of these
    # What the agent's shell gets after -c: {command} or {quoted}, and `*` for a path.
    tool_calls: tuple[str, ...] = ()

    def line(self, words: list[str], *, has_file_rules: bool = False) -> tuple[str, ...]:
        """Return the command; `words` are the user's own, the file rules the preset's policy's."""
        before = [each for each in self.before if each not in words]
        if has_file_rules and not any(word.startswith(self.sandbox_words) for word in words):
            before += " ".join(self.without_sandbox[:1]).split()
        return self.program, *before, *words

    def makes_sandbox(self, words: Sequence[str]) -> bool:
        """Return whether the agent uses its own sandbox, by its words without its settings."""
        off = {each.split()[-1] for each in self.without_sandbox}
        return bool(off) and not any(each in word for word in words for each in off)

    def as_daemon(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return a daemon's words without its interpreter, or none for another program."""
        for at, word in enumerate(argv[:2]):
            name = word.rpartition("/")[2].removesuffix(".js")
            for daemon in self.daemons:
                program, *words = daemon.split()
                if program == name and _are_in(tuple(words), argv[at + 1 :]):
                    return name, *argv[at + 1 :]
        return ()


# Tried with Claude Code 2.1, Codex 0.171, Gemini CLI 0.61.
_CLAUDE = Preset(
    "claude",
    "claude",
    "agent-default",
    "npm install -g @anthropic-ai/claude-code",
    # Background sessions would run in `claude daemon`, which is outside this session or outlives
    # it. Its updater would ask to install a package at each start.
    environment=(("CLAUDE_CODE_DISABLE_AGENT_VIEW", "1"), ("DISABLE_AUTOUPDATER", "1")),
    daemons=("claude daemon",),
    stop="claude daemon stop --any",
    # It sources a snapshot of the user's shell settings (bash, then zsh), and records the working
    # directory at the end.
    tool_calls=(
        "eval {quoted} < /dev/null && pwd -P >| *",
        *(
            f"{before}{settings} 2>/dev/null || true && eval {{quoted}}{after} && pwd -P >| *"
            for settings in ("shopt -u extglob", "setopt NO_EXTENDED_GLOB NO_BARE_GLOB_QUAL")
            for before, after in (
                ("source * 2>/dev/null || true && ", " < /dev/null"),
                ("source * 2>/dev/null || true && ", ""),
                ("", " < /dev/null"),
            )
        ),
    ),
)
_CODEX = Preset(
    "codex",
    "codex",
    "agent-default",
    "npm install -g @openai/codex",
    # Without this option, its screen hands all work to an app-server that already runs, or starts
    # one that outlives the session.
    before=("--no-daemon",),
    daemons=("codex app-server",),
    stop="codex app-server daemon stop",
    # Its own sandbox mounts file systems, which file rules forbid to all processes of the session.
    # So the preset leaves it out, unless the user names a policy or one of these words.
    without_sandbox=(
        '-c sandbox_mode="danger-full-access"',
        "-s danger-full-access",
        "--dangerously-bypass-approvals-and-sandbox",
        "--yolo",
    ),
    sandbox_words=(
        *("-s", "--sandbox", "sandbox_mode", "--full-auto", "--yolo", "--dangerously-bypass"),
    ),
)
_GEMINI = Preset(
    "gemini",
    "gemini",
    "agent-default",
    "npm install -g @google/gemini-cli",
    # The first is for headless mode, the second for text after `!` on its screen. They record
    # background processes and the working directory at the end.
    tool_calls=(
        "shopt -u promptvars nullglob extglob nocaseglob dotglob; _bgpids_file=*\n(\n"
        "  trap 'jobs -p > \"$_bgpids_file\"' EXIT\n{command}\n)\n__code=$?\nexit $__code",
        "{\n{command}\n}\n__code=$?; pwd > *; exit $__code",
    ),
)
PRESETS = {each.name: each for each in (_CLAUDE, _CODEX, _GEMINI)}
# Few shells in a log run a tool call, and to try each pattern takes time.
_STARTS = tuple(
    min((each.partition(variable)[0] for variable in (COMMAND, QUOTED, PATH)), key=len)
    for preset in PRESETS.values()
    for each in preset.tool_calls
)


def as_meant(argv: list[str]) -> list[str]:
    """Return a shell's words without what an agent puts around a tool call's command.

    Only text that is known by the letter, apart from paths, is left out. Other words come back as
    the same list.
    """
    if len(argv) < 3 or argv[0].rpartition("/")[2] not in _SHELLS:
        return argv
    if not argv[-1].startswith(_STARTS):
        return argv
    for pattern, is_quoted in _tool_calls():
        found = pattern.fullmatch(argv[-1])
        if found is None:
            continue
        inner = found.group(1)
        if is_quoted and (inner := _one_word(inner)) is None:
            continue
        return [*argv[:-1], inner]
    return argv


def _are_in(words: tuple[str, ...], argv: tuple[str, ...]) -> bool:
    """Return whether the words follow each other somewhere."""
    return any(argv[at : at + len(words)] == words for at in range(len(argv)))


def _one_word(text: str) -> str | None:
    """Return the word that a shell reads in quoted text, if it is one."""
    import shlex

    try:
        words = shlex.split(text)
    except ValueError:
        return None
    is_quoted = text[:1] == "'" and text[-1:] == "'"
    return words[0] if is_quoted and len(words) == 1 else None


def _tool_calls() -> list[tuple[re.Pattern[str], bool]]:
    if not _compiled:  # only a run that has a shell needs them
        for preset in PRESETS.values():
            _compiled.extend(map(_pattern, preset.tool_calls))
    return _compiled


def _pattern(text: str) -> tuple[re.Pattern[str], bool]:
    is_quoted = QUOTED in text
    parts = text.split(QUOTED if is_quoted else COMMAND)
    around = (r"[\w@%+=:,./~^-]*".join(map(re.escape, part.split(PATH))) for part in parts)
    return re.compile("(?s)" + "(.*)".join(around)), is_quoted


_compiled: list[tuple[re.Pattern[str], bool]] = []
