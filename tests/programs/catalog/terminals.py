"""Programs that own the screen."""

from __future__ import annotations

from tests.programs.program import Do, Program, See, Shot, Type

_LINES = "seq -f 'line %g' 200 >a"
# Vim throws away what is typed until it has dealt with an interrupt, which is after it says so.
_VIM_WAITS = Do(
    "timeout 10 sh -c 'until grep -q -e select -e poll"
    " /proc/$(pgrep -u $(id -u) -nx vim)/wchan; do :; done'"
)

PROGRAMS = [
    Program(
        name="vim",
        needs=("vim", "pgrep"),
        before=_LINES,
        line=("vim", "-u", "NONE", "-N", "-n", "-i", "NONE", "a"),
        terminal=True,
        acts=(
            See("line 23"),
            Shot(),
            Type("ihello \x1b"),
            See("^hello line 1$"),
            Type(":r !echo from a shell\r"),
            See("^from a shell"),
            Shot(),
            Type(":!echo shown; false\r"),
            See("shell returned 1"),
            Type("\r"),
            See(r"(?s)\A(?!.*Press ENTER).*^from a shell"),
            _VIM_WAITS,
            Type("\x03"),
            See("Type +:qa"),
            _VIM_WAITS,
            Type(":wq\r"),
        ),
    ),
    Program(
        name="less",
        needs=("less",),
        before=_LINES,
        line=("less", "-R", "a"),
        terminal=True,
        acts=(
            See("line 23"),
            Shot(),
            Type("/line 150\r"),
            See("line 150"),
            Shot(),
            Type("G"),
            See("line 200"),
            Shot(),
            Type("!echo from a shell\r"),
            See("^from a shell"),
            Type("\r"),
            See("line 200"),
            Type("q"),
        ),
        quick=True,
    ),
    Program(
        name="less +F, ^C",
        needs=("less",),
        before=_LINES,
        line=("less", "+F", "a"),
        terminal=True,
        acts=(
            See("Waiting for data"),
            Type("\x03"),
            See(r"\A(?![\s\S]*Waiting)"),
            Type("="),
            See(r"lines \d+"),
            Type("q"),
        ),
    ),
    Program(
        name="htop",
        needs=("htop",),
        line=("htop", "--no-color", "-d", "100"),
        terminal=True,
        acts=(See("F10Quit"), Type("q")),
    ),
    Program(
        name="tmux",
        needs=("tmux",),
        line=("tmux", "-L", "t", "-f", "/dev/null", "new", "-s", "a", "PS1='> ' bash --norc"),
        terminal=True,
        acts=(
            See(r"\[a\]"),
            # Keys that come within a millisecond of others are a paste to tmux, and no command.
            Type("tmux set status off; clear; echo off\r"),
            See(r"^off\s+>$"),
            Type("\x02%"),
            See(r"│"),
            Type("\x02x"),
            See(r"kill-pane"),
            Type("y"),
            See(r"\A[^│]*\Z"),
            Type("clear; tmux list-panes | wc -l; (echo sleeps; exec sleep 61)\r"),
            See(r"^1\s+sleeps$"),
            Type("\x03"),
            See(r"\^C\s+>$"),
            Shot(),
            Type("tmux kill-server\r"),
        ),
        differs=dict.fromkeys(
            ("agent-default", "ci"),
            "agent-default asks before it runs tmux, ci denies it (rule `other-terminals`)",
        ),
        within_s=20,
    ),
    Program(
        name="python's prompt",
        needs=("python3",),
        line=("python3", "-q", "-I"),
        terminal=True,
        acts=(
            See(">>>"),
            Type("6 * 7\r"),
            See(r"^42\s+>>>$"),
            Type("import subprocess; subprocess.run(['echo', 'hi'])\r"),
            See(r"^hi\s.*\s+>>>$"),
            Type("exit(3)\r"),
        ),
        quick=True,
    ),
    Program(
        name="gdb's prompt, ^C",
        needs=("gdb",),
        line=("gdb", "-nx", "-q"),
        terminal=True,
        acts=(
            See(r"\(gdb\)"),
            Type("half a line"),
            See(r"\(gdb\) half a line"),
            Type("\x03"),
            See(r"(?s)Quit.*^\(gdb\)$"),
            Type("print 6 * 7\r"),
            See("= 42"),
            Type("quit 3\r"),
        ),
    ),
]
