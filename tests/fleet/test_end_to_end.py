"""From a real session through a real bucket to an answer, with the command line alone."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.fleet.conftest import OWNER, Store
from tests.support.harness import Sigwrap

pytestmark = pytest.mark.fleet

QUESTIONS = (
    "select session, state, exit_status, head, repo from sessions order by session",
    "select session, seq, what, rule, message, count from denials order by session, seq",
    "select session, seq, command, outcome, argv from execs order by session, seq",
    "select session, pid, command, exit_code, ended_ns from processes order by session, pid",
    "select session, seq, hash, payload from events order by session, seq",
)


def rows(subject: Sigwrap, *words: str, **env: str) -> Any:
    done = subject.run("query", "--format", "json", *words, env=env, forks=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_bucket_answers_as_the_store_does(as_user: Sigwrap, seaweed: Store) -> None:
    for number, command in enumerate(("git push --force; true é", "kill -0 1; npm publish")):
        as_user.run("--label", f"repo=acme/{number}", "--", "sh", "-c", command)
    url, reader = f"s3://fleet/e2e-{as_user.mark}", seaweed.env(OWNER)
    shipped = as_user.run("ship", "--all", "--to", url, env=seaweed.env())
    assert shipped.returncode == 0, shipped.stderr
    expected = [rows(as_user, "--all", sql) for sql in QUESTIONS]
    assert expected[0] and expected[1]
    (date,) = {each["started"][:10] for each in rows(as_user, "--all", "select * from sessions")}
    for compacted in (False, True):
        if compacted:
            words = ("lake", "compact", "--at", url, "--date", date)
            done = as_user.run(*words, env=reader, forks=False)
            assert (done.returncode, done.stdout.splitlines()[1:]) == (0, [date.encode()])
        assert [rows(as_user, "--lake", url, sql, **reader) for sql in QUESTIONS] == expected
        done = as_user.run("verify", "--lake", url, "--strict", env=reader, forks=False)
        assert (done.returncode, b"intact" in done.stdout) == (0, True), done
    wrong = ("verify", "--lake", url, "--head", "0" * 64)
    assert as_user.run(*wrong, env=reader, forks=False).returncode == 1


@pytest.mark.parametrize(
    ("words", "env", "said"),
    [
        (("--lake", "s3://fleet/x"), {}, "no credential"),
        (("--lake", "s3://fleet/nothing-here"), OWNER, "no sessions in s3://fleet/nothing-here"),
        (("--lake", "s3://fleet/x"), {**OWNER, "AWS_SECRET_ACCESS_KEY": "wrong"}, "403"),
        (("--lake", "s3://fleet/x", "--all"), OWNER, "--lake can't be combined"),
        (("--lake", "http://x"), OWNER, "not a lake's URL"),
    ],
)
def test_a_lake_that_can_not_be_read_is_one_line(
    sigwrap: Sigwrap, seaweed: Store, words: tuple[str, ...], env: dict[str, str], said: str
) -> None:
    variables = seaweed.env(env) if env else {}
    done = sigwrap.run("query", *words, "select 1 from sessions", env=variables, forks=False)
    assert done.returncode == 125
    assert re.fullmatch(r"sigwrap: [^\n]*\n", done.stderr.decode()) and said in done.stderr.decode()
    assert "wrong" not in done.stderr.decode() and "may-do-all" not in done.stderr.decode()
