"""What GitHub's runner does with an action: its steps, their conditions, variables and files, each
step by the shell that it names. Of expressions it knows what the action uses."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from tests.support.bare_machine import BareMachine
from tests.support.waiting import PATIENCE_S

BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
TEMP = "/tmp/runner"
ACTION = "/tmp/action"
_FILES = ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")


@dataclass(slots=True)
class Step:
    """One that was run, or is."""

    name: str
    status: int
    stdout: str
    stderr: str


@dataclass(slots=True)
class Runner:
    """One job. The variables, and the PATH, are those that the steps so far have left."""

    machine: BareMachine
    env: dict[str, str] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)
    summary: str = ""
    kept: list[tuple[str, str]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    _scripts: int = 0

    def __post_init__(self) -> None:
        self.machine.place(TEMP).mkdir()

    def use(self, action: Mapping[str, Any], given: Mapping[str, str]) -> bool:
        """An action of its own steps; whether they succeeded."""
        known = action["inputs"]
        assert set(given) <= set(known)
        assert all(name in given or not known[name].get("required") for name in known)
        values = {"runner.temp": TEMP}
        for name, about in known.items():
            values[f"inputs.{name}"] = given.get(name, about.get("default", ""))
        is_well = True
        for step in action["runs"]["steps"]:
            if not _is_to_run(step.get("if", "success()"), values, is_well=is_well):
                continue
            if "uses" in step:
                self._keep(step, values)
                continue
            process = self.start(step, values)
            is_well = self.finish(step, process, values) == 0 and is_well
        return is_well

    def start(self, step: Mapping[str, Any], values: Mapping[str, str]) -> subprocess.Popen[str]:
        self._scripts += 1
        script = f"{TEMP}/step{self._scripts}.sh"
        self.machine.place(script).write_text(_filled(step["run"], values))
        for name in _FILES:
            self.machine.place(f"{TEMP}/{name}").write_text("")
        assert step["shell"] == "bash" or "{0}" in step["shell"]
        line = BASH if step["shell"] == "bash" else step["shell"].replace(" {0}", "").split()
        env = {
            "PATH": ":".join([*reversed(self.path), "/bin"]),
            "HOME": "/root",
            "CI": "true",
            "RUNNER_TEMP": TEMP,
            "GITHUB_ACTION_PATH": ACTION,
            **{name: f"{TEMP}/{name}" for name in _FILES},
            **self.env,
            **{name: _filled(value, values) for name, value in step.get("env", {}).items()},
        }
        given = [f"{name}={value}" for name, value in env.items()]
        return subprocess.Popen(
            [*self.machine.enter(), "env", "-i", *given, *line, script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(
        self, step: Mapping[str, Any], process: subprocess.Popen[str], values: dict[str, str]
    ) -> int:
        said, errors = process.communicate(timeout=PATIENCE_S)
        self.steps.append(Step(step.get("name", ""), process.returncode, said, errors))
        self.summary += self._file("GITHUB_STEP_SUMMARY")
        self.path += self._file("GITHUB_PATH").splitlines()
        self.env |= _pairs(self._file("GITHUB_ENV"))
        if "id" in step:
            is_well = process.returncode == 0
            values[f"steps.{step['id']}.outcome"] = "success" if is_well else "failure"
            for name, value in _pairs(self._file("GITHUB_OUTPUT")).items():
                values[f"steps.{step['id']}.outputs.{name}"] = value
        return process.returncode

    def _file(self, name: str) -> str:
        return self.machine.place(f"{TEMP}/{name}").read_text()

    def _keep(self, step: Mapping[str, Any], values: Mapping[str, str]) -> None:
        assert step["uses"].startswith("actions/upload-artifact@")
        name, path = (_filled(step["with"][key], values) for key in ("name", "path"))
        self.kept.append((name, path))


def _pairs(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def _filled(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{ *(\S+) *\}\}", lambda found: values[found[1]], text)


def _is_to_run(condition: str, values: Mapping[str, str], *, is_well: bool) -> bool:
    terms = condition.split(" && ")
    if not any(term in ("always()", "success()") for term in terms):
        terms.append("success()")
    return all(_holds(term, values, is_well=is_well) for term in terms)


def _holds(term: str, values: Mapping[str, str], *, is_well: bool) -> bool:
    if term in ("always()", "success()"):
        return is_well or term == "always()"
    name, sign, word = term.split(" ")
    assert sign in ("==", "!="), term
    return (values.get(name, "") == word.strip("'")) == (sign == "==")


def load_action(text: str) -> Any:
    return yaml.safe_load(text)
