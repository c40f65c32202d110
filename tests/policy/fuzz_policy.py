"""Bytes to a policy and to arguments: whatever they are, only a PolicyError may come out.

`python tests/policy/fuzz_policy.py` runs under atheris where that is installed; the test suite
runs `one_input` on random bytes and on mutilated policies.
"""

from __future__ import annotations

import sys

from sigwrap.errors import PolicyError
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.match import Arguments, BadPattern, Regex
from sigwrap.policy.judge.wrappers import unwrap
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.lint import lint
from sigwrap.policy.language.parse import parse_policy
from sigwrap.policy.tools.cases import command_request
from sigwrap.policy.tools.explain import explain_command, explanation_text

VARIABLES = {"PROJECT_ROOT": "/p", "HOME": "/home/u", "USER": "u", "TMPDIR": "/tmp"}


def one_input(data: bytes) -> None:
    _policy(data.decode("utf-8", "replace"))
    pattern, _, rest = data.partition(b"\0")
    argv = [each.decode("utf-8", "surrogateescape") for each in rest.split(b"\0")]
    _arguments(pattern.decode("utf-8", "replace"), argv)


def _policy(text: str) -> None:
    try:
        policy = parse_policy(
            Source(name="fuzz.yaml", text=text),
            variables=VARIABLES,
            find_base=lambda name, source: Source(name=name, text=text),
        )
    except PolicyError:
        return
    lint(policy)
    explanation_text(explain_command(Engine(policy), command_request(["git", "push", "-f"])))


def _arguments(pattern: str, argv: list[str]) -> None:
    unwrap(argv[0], argv)
    try:
        Arguments(argv).match(Regex([pattern]))
    except BadPattern:
        return


def main() -> None:
    import atheris

    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
