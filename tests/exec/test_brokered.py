"""`via: stub`: a command that has what the agent must not have, in the agent's place."""

from __future__ import annotations

from pathlib import Path

from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.programs import script

BROKERED = """
  - {name: broker, commands: [gh], decision: redirect,
     redirect_to: {command: %(folder)s/real-gh, args: [], append_args: true, via: stub,
                   env: {GITHUB_TOKEN: "${SIGWRAP_HOST:THE_TOKEN}"}}}
"""


def test_it_has_what_the_agent_has_not(as_user: Sigwrap, programs: Path) -> None:
    """The token is nowhere in the agent's environment, memory or the log. The command takes
    nothing from the agent's environment, and its status is its own."""
    folder = as_user.folder
    token = "the-brokered-t0ken-value"
    text = (
        "#!/bin/sh\n"
        'echo "length ${#GITHUB_TOKEN} evil $LD_BIND_NOW.$EVIL args $1,$2"\n'
        "grep -c the-brokered /proc/$$/environ\n"
        "exit 42\n"
    )
    script(folder, "real-gh", text)
    script(folder, "gh", "#!/bin/sh\necho original\n")
    name = policy(folder, BROKERED % {"folder": folder})
    path = f"PATH={folder}:/usr/bin:/bin"
    clean = ("env", "-u", "THE_TOKEN", "EVIL=1", "LD_BIND_NOW=1", path)
    looks = (*PYTHON, str(programs / "looks_for_a_token.py"), token[::-1], "no stub")
    line = ("-p", name, "--", *clean, *looks, "gh", "a b", "c")
    done = as_user.run(*line, env={"THE_TOKEN": token})
    assert done.stderr == b""
    assert done.stdout.decode().splitlines() == [
        f"length {len(token)} evil . args a b,c",
        "0",
        "in memory 0 exit 42",
    ]
    (event,) = as_user.sealed_events("exec_redirected")
    assert (event.payload["via"], event.payload["replacement_env"]) == ("stub", ["GITHUB_TOKEN"])
    for file in as_user.store.rglob("*"):
        if file.is_file():
            assert token.encode() not in file.read_bytes()


def test_a_value_that_the_host_lacks_is_a_denial(as_user: Sigwrap) -> None:
    script(as_user.folder, "gh", "#!/bin/sh\necho original\n")
    name = policy(as_user.folder, BROKERED % {"folder": as_user.folder})
    done = as_user.run("-p", name, "--", "sh", "-c", "./gh; echo $?")
    assert done.stdout == b"126\n"
    assert b"no THE_TOKEN" in done.stderr


def test_a_wrapper_does_its_part_first(as_user: Sigwrap) -> None:
    """What `env` wraps is replaced when it is executed; what ld.so maps, at once."""
    rules = """
  - {name: r, commands: [date], decision: redirect,
     redirect_to: {command: sh, args: ["-c", 'echo "$FROM_ENV $0"'], append_args: true}}
"""
    name = policy(as_user.folder, rules)
    done = as_user.run("-p", name, "--", "env", "FROM_ENV=kept", "date", "word")
    assert done.stdout == b"kept word\n"
    loader = str(next(Path("/lib64").glob("ld-linux-x86-64.so*")))
    done = as_user.run("-p", name, "--", loader, "/bin/date", "mapped", env={"FROM_ENV": "by"})
    assert done.stdout == b"by mapped\n"
