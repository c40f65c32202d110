"""How a program is told what to run: a row of the table in hooks/starters.py."""

from __future__ import annotations

from sigwrap.bare.enum import Enum
from sigwrap.tuples import NamedTuple

EVERYWHERE = 1 << 20


class Then(Enum):
    """What the operands are."""

    WORDS = "a program and its arguments"
    LINE = "a shell's line, in several words"
    ONE_WORD = "a shell's line in one word; those behind it count for nothing"
    LINE_AND_ARGUMENTS = "a shell's line, and what it is given"
    SHELL = "something that a shell is started with, which reads its standard input"
    SUBCOMMAND = "a word that has a row of its own, and what belongs to that"
    SAME = "arguments for the same program once more"
    NOTHING = "nothing that is run"


class Starter(NamedTuple):
    then: Then = Then.WORDS
    short: str = (
        ""  # options as getopt(3) has them: `a`, `b:` with a value, `c::` with one attached
    )
    long: str = ""  # `name`, `name=` with a value, `name?` with one that may be attached
    operands: int = 0  # before what `then` is about
    options_behind: int = 0  # so many operands may have options behind them
    first_operand_first: bool = False  # it is left out where an option stands first
    lines: str = ""  # options whose value is a shell's line
    fed: bool = False  # a line gets more words, which aren't known
    settings: str = ""  # options whose value is a setting of git's
    words: str = ""  # options by which the operands are a program and its arguments
    piped: str = ""  # options whose value is a line where it begins with `|` or `!`
    assigns: str = ""  # options whose value sets a variable
    moves: str = ""  # options after which the folder isn't known; `*`: always
    nothing: str = ""  # options by which nothing is run
    unread: str = ""  # options by which something else may be run; `*`: always
    reads: str = ""  # options whose value is a file with what is run
    unread_values: str = ""  # of any option: beginnings, in small letters
    shell: bool = False  # without a command, a shell
    sets_shell: bool = False  # an operand may set a variable of make's
    sets_git: bool = False  # its last operands are a setting of git's and its value
    on_a_host: bool = False  # the first operand is a machine
