"""What others would get is published by nobody under agent-default, whichever way it is called: the
tools are stand-ins that leave a file behind, npm is the real one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.harness import Sigwrap
from tests.support.programs import needs

STAND_IN = '#!/bin/sh\n: > "$PUBLISHED"\n'
MODULE = "import os\nopen(os.environ['PUBLISHED'], 'w')\n"
PACKAGE = """{"name": "x", "version": "1.0.0", "scripts":
{"release": "npm publish", "all": "npm run release", "ship": "node $NPM_JS publish",
 "image": "docker push x", "way": "cd sub && env A=b npm publish"}}
"""


@pytest.fixture
def project(sigwrap: Sigwrap) -> Sigwrap:
    """With the tools first on PATH."""
    tools = sigwrap.folder / "bin"
    (sigwrap.folder / "sub").mkdir()
    (sigwrap.folder / "mods").mkdir()
    tools.mkdir()
    for name in ("cargo", "docker"):
        (tools / name).write_text(STAND_IN)
        (tools / name).chmod(0o755)
    (sigwrap.folder / "mods" / "twine.py").write_text(MODULE)
    (sigwrap.folder / "setup.py").write_text(MODULE)
    (sigwrap.folder / "package.json").write_text(PACKAGE)
    sigwrap.env |= {
        "PATH": f"{tools}:{sigwrap.env['PATH']}",
        "PUBLISHED": str(sigwrap.folder / "published"),
        "PYTHONPATH": str(sigwrap.folder / "mods"),
        "NPM_CONFIG_UPDATE_NOTIFIER": "false",
        "NPM_CONFIG_REGISTRY": "http://127.0.0.1:9/",
    }
    return sigwrap


def are_denied(project: Sigwrap, lines: dict[str, str]) -> None:
    """Each by the rule that comes with it."""
    text = "\n".join(f"({line}) && echo it ran" for line in lines)
    done = project.run("-p", "agent-default", "--no-report", "--", "sh", "-c", f"{text}\n:")
    assert b"it ran" not in done.stdout
    assert not (project.folder / "published").exists()
    said = ": denied by rule {} of agent-default: publishing is left to people (sigwrap"
    found = done.stderr.decode()
    for rule in set(lines.values()):
        assert found.count(said.format(rule)) >= list(lines.values()).count(rule), found
    denied = [event.payload["rule_name"] for event in project.sealed_events("exec_denied")]
    assert set(denied) == set(lines.values())


def test_a_tool_that_publishes(project: Sigwrap) -> None:
    lines = {
        "cargo publish": "publish",
        "/usr/bin/python3 -m twine upload dist/x": "publish-packages",
        "/usr/bin/python3 setup.py sdist upload": "publish-by-setup",
        "echo x | xargs docker push": "publish-images",
        "cd sub; ln -s ../bin/docker d; ./d push x": "publish-images",
        "cp bin/docker sub/docker && sub/docker push x": "publish-images",
    }
    are_denied(project, lines)


@pytest.mark.tier("all")
@needs("npm")
def test_npm(project: Sigwrap) -> None:
    project.env["NPM_JS"] = str(Path(shutil.which("npm") or "").resolve())
    lines = {
        "npm run all": "publish",
        "npm run way": "publish",
        "npm run ship": "publish",
        "npm run image": "publish-images",
    }
    are_denied(project, lines)
