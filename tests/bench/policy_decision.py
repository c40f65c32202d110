"""How long a decision takes: the median over a policy of 200 rules, for requests of a usual day."""

from __future__ import annotations

import statistics
import time

from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.recorded import program_named
from sigwrap.policy.judge.request import CommandRequest
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.parse import parse_policy
from sigwrap.start.policy_files import find_base, load_policy
from tests.bench.measuring import VALUE
from tests.bench.results import Result

RULES = 200
ROUNDS = 400
VARIABLES = {"PROJECT_ROOT": "/project", "HOME": "/home/user", "TMPDIR": "/tmp"}
# Each as one program, the way a shell or make starts it.
COMMAND_LINES = (
    "git status --short",
    "git commit -m 'a message'",
    "npm run build",
    "python3 -m pytest -q",
    "make -j2",
    "cc -O2 -Wall -c -o a.o a.c",
    "rm -f a.o b.o",
    "ls -la",
    "sh -c 'true'",
    "./configure",
)


def measure() -> Result:
    engine = Engine(
        parse_policy(
            Source(name="bench.yaml", text=policy_text()),
            variables=VARIABLES,
            find_base=find_base,
        )
    )
    requests = [_request(line) for line in COMMAND_LINES]
    durations_ns = []
    for _ in range(ROUNDS):
        for request in requests:
            started_ns = time.perf_counter_ns()
            engine.decide_command(request)
            durations_ns.append(time.perf_counter_ns() - started_ns)
    return Result(
        key="decision",
        name=f"a decision by a policy of {RULES} rules",
        figures={"us": {VALUE: statistics.median(durations_ns) / 1000}},
    )


def policy_text() -> str:
    """agent-default behind enough rules of a team's own to make 200."""
    own = RULES - len(load_policy("agent-default", variables=VARIABLES).command_rules)
    lines = ["version: 1", "name: bench", "extends: agent-default", "command_rules:"]
    for index in range(own):
        words = f'tool{index}, "/opt/team{index}/bin/*"' if index % 5 == 0 else f"tool{index}"
        patterns = f', args_patterns: ["^--danger{index}$"]' if index % 2 else ""
        lines.append(f"  - {{name: own-{index}, commands: [{words}]{patterns}, decision: deny}}")
    return "\n".join(lines) + "\n"


def _request(line: str) -> CommandRequest:
    argv = line.split()
    return CommandRequest(programs=(program_named(argv[0], argv),), depth=1)
