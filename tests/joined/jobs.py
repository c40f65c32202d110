"""A job on a shell's terminal, from its start over a stop to its end by a key."""

from __future__ import annotations

from pathlib import Path

from tests.support.terminal import Terminal

_JOB = """
import os, signal, time
signal.signal(signal.SIGCONT, lambda *_: os.write(1, b'again\\n'))
os.write(1, b'up\\n')
while True:  # a signal right before pause() would be lost
    time.sleep(0.05)
"""


def work_a_job(terminal: Terminal, folder: Path) -> None:
    """At a bash that says PROMPT, before and after."""
    job = folder / "job.py"
    job.write_text(_JOB)
    terminal.type(f"python3 {job}\n")
    terminal.output.until(rb"\nup|\rup")
    terminal.press("z")
    terminal.output.until(rb"Stopped")
    terminal.output.until(rb"PROMPT> ")
    terminal.type("fg\n")
    terminal.output.until(rb"\nagain|\ragain")
    terminal.press("c")
    terminal.output.until(rb"PROMPT> ")
