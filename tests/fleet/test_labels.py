"""A session's labels: the user's own, and those of a CI job's variables."""

from __future__ import annotations

import json
import re

import pytest

from sigwrap.session.settings import LONGEST_LABEL, ci_labels
from tests.support.harness import Sigwrap

JOBS = {
    "GitHub": "GITHUB_REPOSITORY=a/b GITHUB_SHA=c0 GITHUB_WORKFLOW=w GITHUB_RUN_ID=7 GITHUB_JOB=t",
    "GitLab": "CI_PROJECT_PATH=a/b CI_COMMIT_SHA=c0 CI_PIPELINE_NAME=w CI_PIPELINE_ID=7 "
    "CI_JOB_NAME=t",
    "Jenkins": "GIT_URL=a/b GIT_COMMIT=c0 JOB_NAME=w BUILD_NUMBER=7 STAGE_NAME=t",
    "Buildkite": "BUILDKITE_REPO=a/b BUILDKITE_COMMIT=c0 BUILDKITE_PIPELINE_SLUG=w "
    "BUILDKITE_BUILD_NUMBER=7 BUILDKITE_LABEL=t",
    "Azure": "BUILD_REPOSITORY_NAME=a/b BUILD_SOURCEVERSION=c0 BUILD_DEFINITIONNAME=w "
    "BUILD_BUILDID=7 AGENT_JOBNAME=t",
}


@pytest.mark.parametrize("system", JOBS)
def test_a_ci_job_has_the_same_labels_on_every_system(system: str) -> None:
    variables = dict(each.encode().split(b"=") for each in JOBS[system].split())
    assert ci_labels(variables | {b"CI": b"true"}) == {
        "repo": "a/b",
        "revision": "c0",
        "pipeline": "w",
        "run": "7",
        "job": "t",
    }
    assert ci_labels(variables) == ci_labels(variables | {b"CI": b"false"}) == {}


def test_a_value_that_is_long_or_no_text_is_bounded() -> None:
    found = ci_labels({b"CI": b"1", b"GITHUB_REPOSITORY": b"\xff" * 9_999, b"GITHUB_SHA": b""})
    assert found == {"repo": "�" * LONGEST_LABEL}


def labels_of(sigwrap: Sigwrap) -> dict[str, str]:
    sql = "select repo, job, labels from sessions"
    (row,) = json.loads(sigwrap.run("query", "--format", "json", sql).stdout)
    labels: dict[str, str] = json.loads(row["labels"])
    assert (row["repo"], row["job"]) == (labels.get("repo"), labels.get("job"))
    return labels


def test_the_log_has_the_labels_and_the_users_own_win(as_user: Sigwrap) -> None:
    job = {"CI": "true", "GIT_URL": "https://ann:secret@example.com/a.git", "STAGE_NAME": "test"}
    mine = ("--label", "team=pay=1", "--label=job=mine", "--label", "job=é")
    assert as_user.run(*mine, "--", "true", env=job).returncode == 0
    found = labels_of(as_user)
    assert found == {
        "repo": "https://example.com/a.git",
        "team": "pay=1",
        "job": "é",
    }


@pytest.mark.parametrize(
    "word", ["x", "=x", "x=", "1x=y", "a b=c", "a=\x1b[0m", "é=1", "a=" + "b" * 999]
)
def test_what_is_no_label_is_refused_in_one_line(sigwrap: Sigwrap, word: str) -> None:
    done = sigwrap.run("--label", word, "--", "true")
    assert (done.returncode, done.stdout) == (125, b"")
    assert re.fullmatch(rb"sigwrap: --label [^\n]*(NAME=VALUE|longer)[^\n]*\n", done.stderr)


def test_ids_are_in_utc_and_no_two_are_the_same(sigwrap: Sigwrap) -> None:
    for _ in range(2):
        assert sigwrap.run("--", "true", env={"TZ": "Pacific/Kiritimati"}).returncode == 0
    found = json.loads(sigwrap.run("sessions", "--format", "json").stdout)["sessions"]
    ids = [each["session_id"] for each in found]
    assert all(re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{16}", each) for each in ids)
    assert len({each[-16:] for each in ids}) == 2
    started = json.loads(
        sigwrap.run(
            "query", "--all", "--format", "json", "select session, started from sessions"
        ).stdout
    )
    for each in started:
        digits = re.sub(r"\D", "", each["started"])[:12]
        assert each["session"].replace("-", "")[:12] == digits
