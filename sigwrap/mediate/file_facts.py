"""What a call would do with a file, as it was when that was looked at."""

from __future__ import annotations

from sigwrap.bare.enum import Enum
from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.lineage import Process
from sigwrap.tuples import NamedTuple


class Change(Enum):
    WRITE = "write"
    CREATE = "create"
    DELETE = "delete"
    RENAME = "rename"


class Touched(NamedTuple):
    change: Change
    path: str  # where it really lies; where that can't be told, as the caller calls it
    to: str = ""  # the other name, of a rename or a link
    is_written: bool = False  # what is made, afterwards
    is_exchange: bool = False  # each gets the other's name


class Nothing(NamedTuple):
    """By its flags it only looks, or it is about no file."""


class Unseen(NamedTuple):
    why: str


FileAim = Touched | Nothing | Unseen | WouldFail


class FileFacts(NamedTuple):
    process: Process
    syscall: str
    aim: FileAim
