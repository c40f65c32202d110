"""A program that takes the terminal for its screen. Key r: runs uname, with its output in a pipe;
R: on the screen; q: leaves."""

import os
import re
import termios
import tty

row = 2


def show(text: str) -> None:
    global row
    os.write(1, f"\x1b[{row};1H{text}\r".encode())
    row += 1


def run(*, on_screen: bool) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        if not on_screen:
            os.dup2(writing, 1)
            os.dup2(writing, 2)
        try:
            os.execvp("/usr/bin/uname", ["uname"])
        except PermissionError:
            os._exit(126)
    os.close(writing)
    said = b""
    while data := os.read(reading, 1 << 16):
        said += data
    _, status = os.waitpid(child, 0)
    for line in re.split(r"\n", said.decode()):
        show(f"SAID {line}")
    show(f"STATUS {os.waitstatus_to_exitcode(status)}")


before = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b"\x1b[?1049h\x1b[2J\x1b[1;1HSCREEN")
while (key := os.read(0, 1)) != b"q":
    show(f"key {key!r}")
    if key in b"rR":
        run(on_screen=key == b"R")
os.write(1, b"\x1b[?1049l")
termios.tcsetattr(0, termios.TCSADRAIN, before)
