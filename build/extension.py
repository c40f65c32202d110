"""Compile the one file of C, and check the shipped policies. Read by hatchling.

Without a compiler or Python's headers, sigwrap judges each exec anew.
"""

from __future__ import annotations

import glob
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = "sigwrap/exec/_repeated.c"
TARGET = "sigwrap/exec/_repeated.abi3.so"
POLICIES = "sigwrap/policy/shipped.py"
FLAGS = ["-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-s"]


class CompiledExtension(BuildHookInterface):  # type: ignore[misc]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        target, policies = (os.path.join(self.root, each) for each in (TARGET, POLICIES))
        if version != "editable":
            self._folder = tempfile.mkdtemp()
            target, policies = (
                os.path.join(self._folder, os.path.basename(each)) for each in (TARGET, POLICIES)
            )
        check_policies(self.root, policies)
        if self.target_name == "wheel" and version != "editable":
            build_data["force_include"][policies] = POLICIES
        why = compiled(os.path.join(self.root, SOURCE), target)
        if why:
            self.app.display_warning(f"without {TARGET}, each exec is judged anew: {why}")
        elif version != "editable":
            build_data["force_include"][target] = TARGET
            build_data["pure_python"] = False
            machine = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"cp311-abi3-{machine}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            shutil.rmtree(self._folder, ignore_errors=True)


def check_policies(root: str, target: str) -> None:
    policies = sorted(glob.glob("policies/*.yaml", root_dir=root))
    command = [sys.executable, "-m", "sigwrap.policy.tools.shipped", f"{target}.unfinished"]
    subprocess.run([*command, *policies], cwd=root, check=True)
    os.replace(f"{target}.unfinished", target)


def compiled(source: str, target: str) -> str:
    """Why it could not be; empty where it was. What was there before is gone then."""
    compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
    if os.path.exists(target):
        os.unlink(target)
    headers = sysconfig.get_path("include")
    if sysconfig.get_platform() != "linux-x86_64":
        return "it is for linux-x86_64"
    if not os.path.exists(os.path.join(headers, "Python.h")):
        return "Python's headers are missing (apt-get install python3-dev)"
    command = [*compiler, *FLAGS, f"-I{headers}", "-o", target, source]
    try:
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    except OSError as failure:
        return f"{compiler[0]}: {failure.strerror}"
    return (done.stderr.strip() or "the compiler failed") if done.returncode else ""
