"""What others would get is published by nobody under agent-default, whichever way it is called: the
tools are stand-ins that leave a file behind, npm is the real one."""

from __future__ import annotations

import os
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
def project(as_user: Sigwrap) -> Sigwrap:
    """With the tools first on PATH."""
    tools = as_user.folder / "bin"
    (as_user.folder / "sub").mkdir()
    (as_user.folder / "mods").mkdir()
    tools.mkdir()
    for name in ("cargo", "cargo-release", "twine", "docker", "gem", "poetry", "podman", "helm"):
        (tools / name).write_text(STAND_IN)
        (tools / name).chmod(0o755)
    (as_user.folder / "mods" / "twine.py").write_text(MODULE)
    (as_user.folder / "setup.py").write_text(MODULE)
    (as_user.folder / "package.json").write_text(PACKAGE)
    if as_user.user is not None:
        for path in as_user.folder.rglob("*"):
            os.chown(path, as_user.user, as_user.user)
    as_user.env |= {
        "PATH": f"{tools}:{as_user.env['PATH']}",
        "PUBLISHED": str(as_user.folder / "published"),
        "PYTHONPATH": str(as_user.folder / "mods"),
        "NPM_CONFIG_UPDATE_NOTIFIER": "false",
        "NPM_CONFIG_REGISTRY": "http://127.0.0.1:9/",
    }
    return as_user


def is_denied(project: Sigwrap, line: str, rule: str) -> None:
    done = project.run("-p", "agent-default", "--no-report", "--", "sh", "-c", line)
    assert done.returncode != 0
    said = f": denied by rule {rule} of agent-default: publishing is left to people (sigwrap"
    assert said.encode() in done.stderr, done.stderr
    assert not (project.folder / "published").exists()
    denied = [event.payload["rule_name"] for event in project.sealed_events("exec_denied")]
    assert set(denied) == {rule}


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("cargo publish", "publish"),
        ("cargo +nightly --offline publish -p x", "publish"),
        ("cargo workspaces publish", "publish"),
        ("cargo release", "publish"),
        ("cargo-release release", "publish"),
        ("twine upload dist/x", "publish-packages"),
        ("/usr/bin/python3 -m twine upload dist/x", "publish-packages"),
        ("/usr/bin/env python3 -s -m twine upload dist/x", "publish-packages"),
        ("/usr/bin/python3 setup.py sdist upload", "publish-by-setup"),
        ("docker push x", "publish-images"),
        ("docker --context y image push x", "publish-images"),
        ("docker buildx build --push .", "publish-images-by-build"),
        ("podman push x", "publish-images"),
        ("helm push x oci://y", "publish-images"),
        ("poetry publish --build", "publish"),
        ("gem push x.gem", "publish-packages"),
        ("echo x | xargs docker push", "publish-images"),
        ("cd sub; ln -s ../bin/docker d; ./d push x", "publish-images"),
        ("cp bin/docker sub/docker && sub/docker push x", "publish-images"),
    ],
)
def test_a_tool_that_publishes(project: Sigwrap, line: str, rule: str) -> None:
    is_denied(project, line, rule)


@needs("npm")
@pytest.mark.parametrize(
    "line",
    [
        "npm publish",
        "npm --workspace sub publish",
        "npm run release",
        "npm run all",
        "npm run way",
        "npm run ship",
        'node "$NPM_JS" publish',
    ],
)
def test_npm(project: Sigwrap, line: str) -> None:
    project.env["NPM_JS"] = str(Path(shutil.which("npm") or "").resolve())
    is_denied(project, line, "publish")


@needs("npm")
def test_a_script_of_npms_that_pushes_an_image(project: Sigwrap) -> None:
    is_denied(project, "npm run image", "publish-images")


def test_the_stand_ins_would_publish(project: Sigwrap) -> None:
    for line in ("docker push x", "/usr/bin/python3 -m twine upload x", "cargo publish"):
        project.run("-p", "agent-observe", "--", "sh", "-c", line)
        (project.folder / "published").unlink()
