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
from tests.support.programs import script


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not shutil.which(program), reason=f"needs {program}")


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


SHELL = """
echo a | cat | tr a b
(exit 3); echo $?
sh -c 'kill -TERM $$'; echo $?
x=$(echo inner; exit 4); echo "$x $?"
false || echo or
for i in 1 2 3; do (echo $i >&2; exit $i) & wait $!; echo $?; done
sleep 600 & kill $!; wait $!; echo $?
trap 'echo usr1' USR1; kill -USR1 $$
trap 'echo bye' EXIT
cat <<end | wc -l
one
two
end
yes 2>/dev/null | head -2
command -v no-such-program; echo $?
no-such-program 2>/dev/null; echo $?
/tmp 2>/dev/null; echo $?
exec sh -c 'exit 9'
"""


@pytest.mark.parametrize("shell", ["bash", "dash", "sh", "busybox"])
def test_shells(sigwrap: Sigwrap, shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}")
    lead = [shell, "sh"] if shell == "busybox" else [shell]
    _same(sigwrap, *lead, "-c", SHELL, status=9)


@needs("bash")
def test_bash_specials(sigwrap: Sigwrap) -> None:
    text = """
set -o pipefail
diff <(echo 1) <(echo 2); echo $?
coproc { read x; echo "got $x"; }
echo hello >&${COPROC[1]}; read y <&${COPROC[0]}; echo "$y"
wait -n; mapfile -t lines < <(printf '%s\\n' a b c); echo ${#lines[@]}
yes | head -1; echo ${PIPESTATUS[*]}
set -m; sleep 600 & jobs -r | wc -l; kill %1; wait; echo end
time -p true 2>/dev/null; disown -a; exit 5
"""
    _same(sigwrap, "bash", "-c", text, status=5)


@needs("make")
def test_parallel_make(sigwrap: Sigwrap) -> None:
    (sigwrap.folder / "Makefile").write_text(
        "all: a b c d\n\t@echo all\na b c d:\n\t@$(MAKE) -s -f Makefile sub-$@\n"
        "sub-%:\n\t@sh -c 'exit 0'\nbad:\n\t@exit 3\n"
    )
    _same(sigwrap, "make", "-j2", "all")
    _same(sigwrap, "make", "-s", "-j2", "bad", status=2)


SUBPROCESS = """
import os, subprocess, sys
subprocess._USE_VFORK = {vfork}
print(subprocess.run(["sh", "-c", "cat; exit 3"], input=b"in", capture_output=True))
print(subprocess.run("echo shell; kill -9 $$", shell=True, stdout=-1).returncode)
try:
    subprocess.run(["/no/such/program"])
except FileNotFoundError as error:
    print(error)
try:
    subprocess.run(["no-such-program"])
except FileNotFoundError as error:
    print(error)
try:
    subprocess.run(["/tmp"])
except PermissionError as error:
    print(error)
print(subprocess.check_output(["pwd"], cwd="/", close_fds=False))
p = subprocess.Popen(["cat"], stdin=-1, stdout=-1, start_new_session=True)
print(p.communicate(b"x" * 100000)[0] == b"x" * 100000, p.returncode)
p = subprocess.Popen(["sleep", "600"], process_group=0)
p.terminate()
print(p.wait())
try:
    subprocess.run(["sleep", "600"], timeout=0.05)
except subprocess.TimeoutExpired:
    print("timeout")
print(os.system("exit 4"), os.popen("echo popen").read())
print([os.waitstatus_to_exitcode(subprocess.Popen(["true"]).wait()) for _ in range(5)])
sys.stdout.flush()
pid = os.posix_spawn("/bin/sh", ["sh", "-c", "echo spawned; exit 6"], os.environ)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
pid = os.posix_spawnp("sh", ["sh", "-c", "exit 7"], os.environ, setsid=True)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
try:
    os.posix_spawnp("no-such-program", ["x"], os.environ)
except FileNotFoundError as error:
    print(error)
"""


@pytest.mark.parametrize("vfork", [True, False])
def test_python_subprocess(sigwrap: Sigwrap, vfork: bool) -> None:
    _same(sigwrap, PYTHON[0], "-c", SUBPROCESS.format(vfork=vfork))


MULTIPROCESSING = """
import multiprocessing, os, sys
def double(x):
    return 2 * x
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2) as pool:
        print(pool.map(double, range(10)))
    process = context.Process(target=sys.exit, args=(3,))
    process.start()
    process.join()
    print(process.exitcode)
    process = context.Process(target=input)
    queue = context.Queue()
    process = context.Process(target=queue.get)
    process.start()
    process.terminate()
    process.join()
    print(process.exitcode)
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_python_multiprocessing(sigwrap: Sigwrap, method: str) -> None:
    program = script(sigwrap.folder, "multi.py", MULTIPROCESSING)
    _same(sigwrap, PYTHON[0], program, method)


NODE = """
const { spawn, exec, execFile, fork, spawnSync, execSync } = require('child_process');
const log = (...words) => console.log(...words);
if (process.argv[2] === 'forked') {
  process.on('message', m => { process.send(m * 2); process.disconnect(); });
} else (async () => {
  log(spawnSync('sh', ['-c', 'cat; exit 3'], { input: 'in' }).stdout.toString());
  log(execSync('echo sync').toString());
  log(spawnSync('no-such-program').error.code);
  log(spawnSync('sleep', ['600'], { timeout: 50 }).signal);
  await new Promise(done => exec('kill -9 $$', e => { log(e.signal); done(); }));
  await new Promise(done => execFile('true', e => { log(e); done(); }));
  const detached = spawn('cat', [], { detached: true });
  detached.stdout.on('data', d => log(d.toString()));
  const over = new Promise(done => detached.on('exit', (c, s) => { log(c, s); done(); }));
  detached.stdin.end('hello');
  await over;
  const killed = spawn('cat');
  killed.kill('SIGTERM');
  await new Promise(done => killed.on('exit', (c, s) => { log(c, s); done(); }));
  const child = fork(__filename, ['forked']);
  child.send(21);
  await new Promise(done => child.on('message', m => { log(m); done(); }));
  process.kill(process.pid, 0);
  process.exitCode = 5;
})();
"""


@needs("node")
def test_node_child_process(sigwrap: Sigwrap) -> None:
    _same(sigwrap, "node", script(sigwrap.folder, "main.js", NODE), status=5)


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
def test_git_with_hooks_and_a_pager(sigwrap: Sigwrap) -> None:
    text = """
cd {run} && git init -q -b main . && git config user.email a@b && git config user.name n
printf '#!/bin/sh\\necho hook ran >&2\\n' >.git/hooks/pre-commit
printf '#!/bin/sh\\ngrep -q no "$1" && exit 1; exit 0\\n' >.git/hooks/commit-msg
chmod +x .git/hooks/*
echo x >f; git add f; git commit -q -m yes
echo y >f; git commit -q -a -m no; echo refused $?
git -c core.pager='sed s/^/paged:/' -p log --format=%s
git -c alias.x='!sh -c "exit 6"' x; echo $?
git clone -q . copy && cd copy && echo z >g && git add g && git commit -q -m more
git push -q origin HEAD:other
git fetch -q && git gc -q && git fsck 2>/dev/null; git log --format=%s --all | sort
EDITOR='sed -i s/more/edited/' git commit -q --amend && git log -1 --format=%s
git stash list; git rebase -q --exec true HEAD~1; git status --short
"""
    env = {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",
    }
    _same(sigwrap, "sh", "-c", text, env=env)


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


GO = """
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
)

func main() {
	got := make(chan os.Signal, 100)
	signal.Notify(got, syscall.SIGUSR1)
	var all sync.WaitGroup
	sums := make([]int, 8)
	for i := range sums {
		all.Add(1)
		go func() {
			defer all.Done()
			runtime.LockOSThread()
			for j := 0; j < 5; j++ {
				out, err := exec.Command("sh", "-c", "echo x").Output()
				if err == nil {
					sums[i] += len(out)
				}
			}
			for j := 0; j < 30000000; j++ {
				sums[i] ^= j & 1
			}
		}()
	}
	for i := 0; i < 20; i++ {
		runtime.GC()
	}
	all.Wait()
	fmt.Println(sums)
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	fmt.Println(<-got)
	err := exec.Command("sh", "-c", "exit 3").Run()
	fmt.Println(err)
	_, err = exec.LookPath("no-such-program")
	fmt.Println(err)
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- syscall.Exec("/bin/sh", []string{"sh", "-c", "echo replaced; exit 8"}, os.Environ())
	}()
	fmt.Println(<-done)
}
"""


@needs("go")
def test_go(sigwrap: Sigwrap, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = Path(tmp_path_factory.getbasetemp()) / "go"
    program = folder / "main"
    if not program.exists():
        folder.mkdir()
        (folder / "main.go").write_text(GO)
        (folder / "go.mod").write_text("module m\n\ngo 1.22\n")
        env = {**os.environ, "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local"}
        line = ["go", "build", "-o", "main", "."]
        built = subprocess.run(line, cwd=folder, env=env, capture_output=True, check=False)
        if built.returncode != 0:
            pytest.skip(f"go can't build here: {built.stderr!r}")
    _same(sigwrap, str(program), status=8)


def test_a_setsid_daemon(sigwrap: Sigwrap) -> None:
    """It can be started, talked to and ended from inside."""
    text = """
mkfifo {run}/in {run}/out
setsid sh -c 'echo $$ >{run}/pid; read x <{run}/in; echo "daemon got $x" >{run}/out' </dev/null &
echo hello >{run}/in; cat {run}/out; wait; echo $?
setsid -f sh -c 'cat {run}/in >{run}/out'
echo again >{run}/in & cat {run}/out
nohup sh -c 'echo nohup' 2>/dev/null | cat
"""
    _same(sigwrap, "sh", "-c", text)


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
        if b"told" not in done.stdout:
            pytest.skip(f"gdb can't run a program here: {done.stderr!r}")
        assert b"exited normally" in done.stdout
        assert b"$1 = 42" in done.stdout


def test_xargs_find_env_nice_timeout(sigwrap: Sigwrap) -> None:
    text = """
seq 20 | xargs -n1 -P4 sh -c 'exit $(($0 % 2))'; echo $?
find / -maxdepth 0 -exec echo found {} \\;
env -i /bin/sh -c 'echo ${PATH:+path}'
nice -n 3 nice
timeout -s KILL 0.05 tail -f /dev/null; echo $?
script -qec 'echo in a terminal' /dev/null </dev/null
flock {run} echo locked
"""
    _same(sigwrap, "sh", "-c", text)


def test_a_deep_and_a_wide_tree(sigwrap: Sigwrap) -> None:
    text = "f() { [ $1 = 0 ] && { /bin/echo bottom; return; }; sh -c ':'; (f $(($1 - 1))); }; f 30"
    _same(sigwrap, "dash", "-c", text)
    text = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do /bin/echo & done | wc -l; wait"
    _same(sigwrap, "dash", "-c", text)


RUST = r"""
use std::os::unix::process::CommandExt;
use std::process::Command;
fn main() {
    let all: Vec<_> = (0..4)
        .map(|i| std::thread::spawn(move || {
            Command::new("sh").args(["-c", &format!("exit {}", i)]).status().unwrap().code()
        }))
        .collect();
    for one in all {
        println!("{:?}", one.join().unwrap());
    }
    println!("{:?}", Command::new("no-such-program").status().map_err(|e| e.kind()));
    std::thread::spawn(|| {
        let error = Command::new("sh").args(["-c", "echo replaced; exit 8"]).exec();
        println!("{error}");
    }).join().unwrap();
}
"""


@needs("rustc")
def test_rust(sigwrap: Sigwrap) -> None:
    (sigwrap.folder / "main.rs").write_text(RUST)
    env = {**os.environ}
    line = ["rustc", "-o", "main", "main.rs"]
    built = subprocess.run(line, cwd=sigwrap.folder, env=env, capture_output=True, check=False)
    if built.returncode != 0:
        pytest.skip(f"rustc can't build here: {built.stderr!r}")
    _same(sigwrap, "./main", status=8)
