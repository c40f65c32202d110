"""As another user than sigwrap: tries to execute what is and what isn't in a folder that it may not
go through, and says how each try fails. The first word is the folder, the others are paths."""

from __future__ import annotations

import errno
import os
import sys

OTHER = 65534


def said(path: str) -> str:
    try:
        os.execv(path, [path])
    except OSError as refusal:
        return errno.errorcode[refusal.errno or 0]


def main() -> None:
    folder, *paths = sys.argv[1:]
    os.chdir(folder)
    os.setgroups([])
    os.setresgid(OTHER, OTHER, OTHER)
    os.setresuid(OTHER, OTHER, OTHER)
    for path in paths:
        print(path, said(path))


main()
