"""What scripts are made of."""

from __future__ import annotations

from tests.programs.program import PIDS_OF_BASH, Program

PROGRAMS = [
    Program(
        name="timeout",
        steps=(
            "timeout 0.3 sleep 60; echo $?",
            "timeout -s INT 0.3 bash -c 'trap \"exit 3\" INT; sleep 60 & wait'; echo $?",
            "timeout -k 0.3 0.2 bash -c 'trap \"\" TERM; sleep 60; sleep 60'; echo $?",
            "timeout --foreground 0.3 sleep 60; echo $?",
        ),
        normalize=(PIDS_OF_BASH,),
        quick=True,
    ),
]
