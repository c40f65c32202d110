"""The recipes of docs/ci.md: their shell is run as each service runs it, on a machine without
Python."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sigwrap.cli.run_options import read_run_line
from tests.support.bare_machine import BareMachine
from tests.support.github_runner import ACTION, TEMP, Runner

pytestmark = [
    pytest.mark.binary,
    pytest.mark.skipif(os.getuid() != 0, reason="a root folder takes root"),
]

ROOT = Path(__file__).parents[2]
CONTAINERS = (ROOT / "docs" / "containers.md").read_text()
TEXT = (ROOT / "docs" / "ci.md").read_text()
ADDRESS = "https://example.com/sigwrap"
DIGEST = re.findall(r"[0-9a-f]{64}", TEXT)[0]
NPM = "#!/bin/sh\necho npm $*; [ ! -e fails ]\n"


def recipes(heading: str, language: str) -> list[str]:
    (part,) = re.findall(rf"^## {heading}\n(.*?)(?=^## )", TEXT, re.MULTILINE | re.DOTALL)
    return re.findall(rf"^```{language}\n(.*?)^```", part, re.MULTILINE | re.DOTALL)


@pytest.fixture
def machine(binary: Path, tmp_path: Path) -> BareMachine:
    """With an npm, and a checkout that has the script and the action."""
    (tmp_path / "machine").mkdir()
    machine = BareMachine.make(tmp_path / "machine", binary)
    shutil.copy(binary, machine.place("/work/sigwrap"))
    machine.place("/bin/npm").write_text(NPM)
    machine.place("/bin/npm").chmod(0o755)
    for folder in (f"{ACTION}/ci", "/work/ci"):
        shutil.copytree(ROOT / "ci", machine.place(folder))
    return machine


def _known(recipe: str, binary: Path) -> str:
    """With the address and the digest of what is really there."""
    digest = hashlib.sha256(binary.read_bytes()).hexdigest()
    return recipe.replace(ADDRESS, "/work/sigwrap").replace(DIGEST, digest)


def _run(
    machine: BareMachine, line: list[str], env: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    given = [f"{name}={value}" for name, value in {"PATH": "/bin", "CI": "true", **env}.items()]
    entered = [*machine.enter(), "env", "-i", *given, *line]
    return subprocess.run(entered, capture_output=True, text=True, check=False, timeout=60)


def _job_of_github(machine: BareMachine, job: dict[str, Any]) -> tuple[Runner, bool]:
    runner, is_well = Runner(machine), True
    values = {"runner.temp": TEMP}
    shell = job.get("defaults", {}).get("run", {}).get("shell", "bash")
    for step in job["steps"]:
        if not is_well and step.get("if") != "always()":
            continue
        if step.get("uses") == "./.github/actions/sigwrap":
            action = yaml.safe_load((ROOT / "action.yml").read_text())
            is_well = runner.use(action, step["with"]) and is_well
        elif "run" in step:
            step = {"shell": shell, **step}
            is_well = runner.finish(step, runner.start(step, values), values) == 0 and is_well
    return runner, is_well


def test_github_s(machine: BareMachine, binary: Path) -> None:
    one_step, each_step = (yaml.safe_load(_known(r, binary)) for r in recipes("GitHub", "yaml"))
    runner, is_well = _job_of_github(machine, one_step["jobs"]["test"])
    assert is_well, runner.steps
    assert runner.steps[1].stdout == "npm ci\nnpm test\n"
    assert runner.summary.count("## sigwrap:") == 1
    machine.place(TEMP).rename(machine.place("/tmp/before"))
    machine.place("/work/fails").touch()
    runner, is_well = _job_of_github(machine, each_step["jobs"]["test"])
    assert not is_well
    assert [step.status for step in runner.steps] == [0, 1, 0]  # and `npm test` isn't run
    assert runner.summary.count("## sigwrap:") == 1
    (kept,) = (step["with"]["path"] for step in each_step["jobs"]["test"]["steps"][-1:])
    assert kept == "${{ runner.temp }}/sigwrap/artifact"
    assert list(machine.place(f"{TEMP}/sigwrap/artifact").glob("*.db"))


def _part_of_gitlab(
    machine: BareMachine, job: dict[str, Any], *parts: str
) -> subprocess.CompletedProcess[str]:
    lines = [line for part in parts for line in job.get(part, [])]
    return _run(machine, ["sh", "-c", "\n".join(["set -e", *lines])], job["variables"])


def test_gitlab_s(machine: BareMachine, binary: Path) -> None:
    (recipe,) = recipes("GitLab", "yaml")
    pipeline = yaml.safe_load(_known(recipe, binary))
    test, decisions = pipeline["test"], pipeline["decisions"]
    machine.place("/work/fails").touch()
    job = _part_of_gitlab(machine, test, "before_script", "script")
    assert (job.returncode, job.stdout.splitlines()[-1]) == (1, "npm test")
    after = _part_of_gitlab(machine, test, "after_script")
    assert (after.returncode, "hash chain intact" in after.stdout) == (0, True)
    (folder,) = test["artifacts"]["paths"]
    # Of another machine, only the artifact is there.
    artifact = machine.place(f"/work/{folder}")
    artifact.rename(machine.root / "kept")
    (machine.root / "work" / ".sigwrap-ci").rename(machine.root / "gone")
    artifact.parent.mkdir()
    (machine.root / "kept").rename(artifact)
    checked = _part_of_gitlab(machine, decisions, "script")
    assert checked.returncode == 0, checked.stderr
    assert "nothing would differ" in checked.stdout


def test_jenkins(machine: BareMachine, binary: Path) -> None:
    (recipe,) = recipes("Jenkins", "groovy")
    text = _known(recipe, binary)
    env = dict(re.findall(r"^ +(\w+) = '(.*)'$", text, re.MULTILINE))
    assert set(env) == {"SIGWRAP_CI_SOURCE", "SIGWRAP_CI_SHA256", "SIGWRAP_CI_CHECK_POLICY"}
    machine.place("/work/fails").touch()
    lines = re.findall(r"^ +sh '(.*)'$", text, re.MULTILINE)
    done = [_run(machine, ["sh", "-xe", "-c", line], env) for line in lines]
    assert [each.returncode for each in done] == [0, 1, 0, 0]
    (kept,) = re.findall(r"artifacts: '(.*)/\*\*'", text)
    assert list(machine.place(f"/work/{kept}").glob("*.db"))


def test_the_devcontainers_feature(machine: BareMachine, binary: Path) -> None:
    """Its options come as variables, named in capitals."""
    feature = json.loads((ROOT / "ci" / "devcontainer-feature.json").read_text())
    (shown,) = re.findall(r"^```json\n(.*?)^```", CONTAINERS, re.MULTILINE | re.DOTALL)
    given = json.loads(_known(shown, binary))["features"][f"./{feature['id']}"]
    assert set(given) == set(feature["options"])
    machine.place("/usr/local/bin").mkdir(parents=True)
    env = {name.upper(): value for name, value in given.items()}
    wrong = _run(machine, ["sh", "ci/install.sh"], {**env, "SHA256": "0" * 64})
    assert (wrong.returncode, list(machine.place("/usr/local/bin").iterdir())) == (125, [])
    assert _run(machine, ["sh", "ci/install.sh"], env).returncode == 0
    done = _run(machine, ["/usr/local/bin/sigwrap", "--", "sh", "-c", "exit 3"], {"HOME": "/root"})
    assert done.returncode == 3, done.stderr
    done = _run(machine, ["/usr/local/bin/sigwrap-forward", "--", "sh", "-c", "exit 4"], {})
    assert (done.returncode, done.stderr) == (4, "")


def test_the_entry_points_of_the_documents_are_lines_that_it_reads() -> None:
    lines = re.findall(r"^ENTRYPOINT (\[.*\])$", CONTAINERS, re.MULTILINE)
    assert len(lines) == 2
    for line in lines:
        assert json.loads(line)[-1] == "--"
    plain = next(json.loads(line) for line in lines if '"sigwrap"' in line)
    assert read_run_line([*plain[1:], "my-agent"]) is not None
    (service,) = re.findall(r"^ExecStart=\S+ (.*)$", CONTAINERS, re.MULTILINE)
    assert read_run_line(service.split()) is not None
