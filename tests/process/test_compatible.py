"""Programs that do something special with processes work as they do without sigwrap: the same
output, the same status."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import EXECS, PYTHON, Sigwrap
from tests.support.programs import compile_go, needs, script


def _same(
    sigwrap: Sigwrap, *words: str, status: int = 0, policy: str = "agent-default", **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Natively first; `{run}` stands for a folder of each run's own."""
    done = []
    for number, start in enumerate((sigwrap.native, sigwrap.run)):
        folder = sigwrap.folder / f"run{number}"
        folder.mkdir(exist_ok=True)
        lead = ["--policy", policy, "--"] if number else []
        filled = [word.replace("{run}", str(folder)) for word in words]
        found = start(*lead, *filled, **options)
        for name in ("stdout", "stderr"):
            text = getattr(found, name).replace(os.fsencode(folder), b"{run}")
            setattr(found, name, text)
        done.append(found)
    native, wrapped = done
    assert native.returncode == status, native.stderr
    assert (wrapped.returncode, wrapped.stdout) == (native.returncode, native.stdout)
    assert wrapped.stderr == native.stderr
    sigwrap.verify(ended=True)
    return wrapped


@pytest.mark.parametrize("shell", ["bash", "dash", "sh", "busybox"])
def test_shells(sigwrap: Sigwrap, shell: str, programs: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}")
    lead = [shell, "sh"] if shell == "busybox" else [shell]
    _same(sigwrap, *lead, str(programs / "shells.sh"), status=9)


@needs("bash")
def test_bash_specials(sigwrap: Sigwrap, programs: Path) -> None:
    _same(sigwrap, "bash", str(programs / "bash_specials.sh"), status=5)


@needs("make")
def test_parallel_make(sigwrap: Sigwrap) -> None:
    (sigwrap.folder / "Makefile").write_text(
        "all: a b c d\n\t@echo all\na b c d:\n\t@$(MAKE) -s -f Makefile sub-$@\n"
        "sub-%:\n\t@sh -c 'exit 0'\nbad:\n\t@exit 3\n"
    )
    _same(sigwrap, "make", "-j2", "all")
    _same(sigwrap, "make", "-s", "-j2", "bad", status=2)


@pytest.mark.parametrize("how", ["vfork", "fork"])
def test_python_subprocess(sigwrap: Sigwrap, how: str, programs: Path) -> None:
    _same(sigwrap, PYTHON[0], str(programs / "subprocesses.py"), how)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_python_multiprocessing(sigwrap: Sigwrap, method: str, programs: Path) -> None:
    _same(sigwrap, PYTHON[0], str(programs / "pools.py"), method)


@needs("node")
def test_node_child_process(sigwrap: Sigwrap, programs: Path) -> None:
    _same(sigwrap, "node", str(programs / "children.js"), status=5)


@needs("npm")
def test_npm_installs_a_local_package_and_starts(sigwrap: Sigwrap) -> None:
    library = sigwrap.folder / "library"
    library.mkdir()
    (library / "package.json").write_text(
        '{"name": "library", "version": "1.0.0", "main": "index.js", "bin": {"tool": "tool.js"},'
        ' "scripts": {"prepare": "true", "postinstall": "node -e 0"}}'
    )
    (library / "index.js").write_text("module.exports = 42;\n")
    script(library, "tool.js", "#!/usr/bin/env node\nconsole.log('tool', require('./index.js'));\n")
    env = {
        "npm_config_offline": "true",
        "npm_config_update_notifier": "false",
        "npm_config_audit": "false",
        "npm_config_fund": "false",
        "npm_config_progress": "false",
    }
    for folder in (sigwrap.folder / "run0", sigwrap.folder / "run1"):
        folder.mkdir()
        (folder / "package.json").write_text(
            '{"name": "p", "version": "1.0.0", "scripts": {"start": "tool && exit 3"}}'
        )
    text = "cd {run} && npm install --silent ../library && ls node_modules && npm start --silent"
    # agent-default asks before anything is installed.
    _same(sigwrap, "sh", "-c", text, status=3, policy="ci", env=env)


@needs("git")
def test_git_with_hooks_and_a_pager(sigwrap: Sigwrap, programs: Path) -> None:
    env = {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",
    }
    _same(sigwrap, "sh", str(programs / "git.sh"), "{run}", env=env)


def test_exec_from_a_thread_that_is_not_the_leader(sigwrap: Sigwrap, compiled: Path) -> None:
    program = str(compiled / "thread_exec")
    _same(sigwrap, program, status=5)
    command = sigwrap.events("session_started")[0].payload["command_pid"]
    assert [event.pid for event in sigwrap.events(*EXECS)] == [command, command]
    _same(sigwrap, program, "in a child", status=5)


@needs("gcc")
def test_gcc(sigwrap: Sigwrap) -> None:
    (sigwrap.folder / "x.c").write_text("int main(void) { return 7; }\n")
    _same(sigwrap, "sh", "-c", "gcc -pipe -O1 -o {run}/x x.c && {run}/x", status=7)
    (sigwrap.folder / "bad.c").write_text("int main(void) { return y; }\n")
    _same(sigwrap, "gcc", "bad.c", status=1)


@needs("go")
def test_go(sigwrap: Sigwrap, programs: Path) -> None:
    _same(sigwrap, compile_go(programs / "main.go"), status=8)


def test_a_setsid_daemon(sigwrap: Sigwrap, programs: Path) -> None:
    """It can be started, talked to and ended from inside."""
    _same(sigwrap, "sh", str(programs / "setsid_daemon.sh"), "{run}")


def test_pipelines_with_sigpipe(sigwrap: Sigwrap) -> None:
    text = "yes | head -3 | tail -1; seq 100000 | head -1; echo ${PIPESTATUS[*]}"
    _same(sigwrap, "bash", "-c", text)


@needs("strace")
def test_strace_inside(sigwrap: Sigwrap) -> None:
    trace = "strace -f -e trace=execve -o {run}/trace sh -c 'true; /bin/true; exit 4'; echo $?"
    filtered = 'grep -o \'execve("[^"]*"\' {run}/trace'
    _same(sigwrap, "sh", "-c", f"{trace}; {filtered}")
    killed = "strace -f -e trace=kill -o /dev/null sh -c 'kill -TERM $$'; echo $?"
    _same(sigwrap, "sh", "-c", killed)


@needs("gdb")
def test_gdb_inside(sigwrap: Sigwrap) -> None:
    line = ["gdb", "-nx", "-batch", "-ex", "run", "-ex", "print 6*7", "--args", "/bin/echo", "told"]
    native, wrapped = sigwrap.native(*line), sigwrap.run("--", *line)
    assert wrapped.returncode == native.returncode == 0
    for done in (native, wrapped):
        assert b"told" in done.stdout, done.stderr
        assert b"exited normally" in done.stdout
        assert b"$1 = 42" in done.stdout


def test_xargs_find_env_nice_timeout(sigwrap: Sigwrap, programs: Path) -> None:
    _same(sigwrap, "sh", str(programs / "wrappers.sh"), "{run}")


def test_a_deep_and_a_wide_tree(sigwrap: Sigwrap) -> None:
    text = "f() { [ $1 = 0 ] && { /bin/echo bottom; return; }; sh -c ':'; (f $(($1 - 1))); }; f 30"
    _same(sigwrap, "dash", "-c", text)
    text = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do /bin/echo & done | wc -l; wait"
    _same(sigwrap, "dash", "-c", text)


@needs("rustc")
def test_rust(sigwrap: Sigwrap, programs: Path) -> None:
    line = ["rustc", "-o", "main", str(programs / "main.rs")]
    built = subprocess.run(line, cwd=sigwrap.folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    _same(sigwrap, "./main", status=8)
