"""A developer's day under agent-default: what signals its own works as without sigwrap."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.harness import PYTHON
from tests.support.signal_lab import Lab
from tests.support.waiting import PATIENCE_S

GO = """
package main
import ("fmt"; "runtime"; "sync"; "time")
func main() {
    runtime.GOMAXPROCS(2)
    var group sync.WaitGroup
    over := time.Now().Add(300 * time.Millisecond)
    for i := 0; i < 8; i++ {
        group.Add(1)
        go func() {
            defer group.Done()
            for x := 1; time.Now().Before(over); { for j := 0; j < 3000000; j++ { x += x * j } }
        }()
    }
    group.Wait()
    fmt.Println("well")
}
"""
JAVA = """
public class Main {
    public static void main(String[] words) throws Exception {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("stopped")));
        System.out.println("started");
        Thread.sleep(1000000);
    }
}
"""


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not shutil.which(program), reason=f"needs {program}")


def _says(lab: Lab, *line: str, said: bytes, status: int = 0) -> None:
    done = lab.subject.run("--", *line)
    assert (done.returncode, done.stdout, done.stderr) == (status, said, b"")
    assert lab.payloads("signal_blocked") == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("set -m; sleep 1000 & kill %1; wait %1; echo $?", b"143\n"),
        ("set -m; sleep 1000 | sleep 1000 & kill -TERM %1; wait; echo $?", b"0\n"),
        ("set -m; sleep 1000 & kill -STOP %1; kill -CONT %1; kill %1; wait; echo $?", b"0\n"),
        ("timeout 0.1 sleep 1000; echo $?", b"124\n"),
        ("timeout -s KILL 0.1 sleep 1000; echo $?", b"137\n"),
        ("timeout --foreground 0.1 sleep 1000; echo $?", b"124\n"),
        ("sleep 1000 & kill -0 $! && kill $! && wait $!; echo $?", b"143\n"),
        ("kill -0 $$ $PPID; echo $?", b"0\n"),
        ("trap 'echo caught' USR1; kill -USR1 $$; echo on", b"caught\non\n"),
        ("(sleep 1000 & echo $! >pid; wait) & until [ -s pid ]; do :; done;"
         " kill $(cat pid); wait $!; echo $?", b"0\n"),
        ("sh -c 'kill -SEGV $$'; echo $?", b"139\n"),
        ("coproc cat; kill $COPROC_PID; wait $COPROC_PID; echo $?", b"143\n"),
        ("yes | head -1", b"y\n"),
    ],
)  # fmt: skip
def test_shell(users_lab: Lab, text: str, said: bytes) -> None:
    _says(users_lab, "bash", "-c", f"exec 2>/dev/null; {text}", said=said)


def test_setuid_and_cancel_in_a_program_of_threads(users_lab: Lab, compiled: Path) -> None:
    _says(users_lab, str(compiled / "setuid_and_cancel"), said=b"well\n")


def test_multiprocessing(users_lab: Lab) -> None:
    text = """
import multiprocessing, time
process = multiprocessing.Process(target=time.sleep, args=(1000,))
process.start(); process.terminate(); process.join()
other = multiprocessing.Process(target=time.sleep, args=(1000,))
other.start(); other.kill(); other.join()
with multiprocessing.Pool(2) as pool:
    print(process.exitcode, other.exitcode, sum(pool.map(abs, range(10))))
"""
    _says(users_lab, *PYTHON, "-c", text, said=b"-15 -9 45\n")


@needs("node")
def test_node(lab: Lab) -> None:
    text = """
const child = require("child_process").spawn("sleep", ["1000"]);
child.on("exit", (code, signal) => {
    console.log(code, signal);
    process.on("SIGUSR2", () => { console.log("usr2"); process.exit(0); });
    setInterval(() => {}, 1000);
    process.kill(process.pid, "SIGUSR2");
});
console.log(child.kill());
"""
    _says(lab, "node", "-e", text, said=b"true\nnull SIGTERM\nusr2\n")


@needs("make")
def test_ctrl_c_ends_make(lab: Lab) -> None:
    (lab.subject.folder / "Makefile").write_text(
        "all:\n\t@echo begun; sleep 1000; echo not reached\n"
    )
    terminal = lab.subject.on_terminal("--no-report", "--", "make")
    terminal.output.until(rb"begun\r\n")
    terminal.press("c")
    assert terminal.await_status() == 130
    assert b"not reached" not in terminal.output.seen
    assert lab.subject.alive() == []
    assert lab.payloads("signal_blocked") == []


@needs("make")
def test_make_ends_its_jobs(lab: Lab) -> None:
    """A make that is told to stop tells its own."""
    (lab.subject.folder / "Makefile").write_text(
        "all: one two\none two:\n\t@echo $@ >$@; exec sleep 1000\n"
    )
    text = "make -j2 & until [ -s one ] && [ -s two ]; do :; done; kill $!; wait $!; echo $?"
    done = lab.subject.run("--", "bash", "-c", text)
    assert (done.returncode, done.stdout) == (0, b"143\n")
    assert lab.payloads("signal_blocked") == []
    sent = [each for each in lab.payloads("signal_sent") if each["source_cmd"] == "make"]
    assert [each["target_type"] for each in sent].count("children") == 2


def test_a_daemon_reloads_when_its_parent_says_so(users_lab: Lab) -> None:
    daemon = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP, signal.SIGTERM})
workers = []
def work():
    if (pid := os.fork()) == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        while True: signal.pause()
    return pid
worker = work()
print("serving", flush=True)
while (number := signal.sigwait({signal.SIGHUP, signal.SIGTERM})) == signal.SIGHUP:
    old, worker = worker, work()
    os.kill(old, signal.SIGTERM)
    print("reloaded", os.waitpid(old, 0)[1], flush=True)
os.kill(worker, signal.SIGTERM)
print("stopped", os.waitpid(worker, 0)[1], flush=True)
"""
    text = """
mkfifo said; "$@" >said & exec 3<said
read -r line <&3; echo $line; kill -HUP $!; read -r line <&3; echo $line
kill -TERM $!; read -r line <&3; echo $line; wait $!; echo $?
"""
    said = b"serving\nreloaded 15\nstopped 15\n0\n"
    _says(users_lab, "bash", "-c", text, "bash", *PYTHON, "-c", daemon, said=said)


@needs("nginx")
def test_nginx_reloads(lab: Lab) -> None:
    folder = lab.subject.folder
    (folder / "nginx.conf").write_text(
        "pid nginx.pid; error_log stderr notice; daemon off; worker_processes 1;\nevents {}\n"
    )
    text = """
nginx -p "$PWD" -c nginx.conf 2>&1 & exec 3< <(:)
until [ -s nginx.pid ]; do :; done
kill -HUP $!; kill -QUIT $!; wait $!; echo $?
"""
    done = lab.subject.run("--", "bash", "-c", text)
    assert done.stdout.endswith(b"0\n")
    assert lab.payloads("signal_blocked") == []


@needs("go")
def test_go_preempts_its_threads(users_lab: Lab, programs: Path) -> None:
    program = programs / "storm"
    if not program.exists():
        source = programs / "storm.go"
        source.write_text(GO)
        cache = os.environ.get("GOCACHE") or str(Path.home() / ".cache" / "go-build")
        line = ["go", "build", "-o", str(program), str(source)]
        environment = {**os.environ, "GOCACHE": cache, "GOTOOLCHAIN": "local", "GO111MODULE": "off"}
        try:
            built = subprocess.run(
                line, env=environment, capture_output=True, timeout=PATIENCE_S, check=False
            )
        except subprocess.TimeoutExpired:
            pytest.skip("go takes too long to build here")
        if built.returncode:
            pytest.skip(f"go can't build here: {built.stderr.decode()}")
        program.chmod(0o755)
    _says(users_lab, str(program), said=b"well\n")
    assert len(users_lab.payloads()) <= 5  # SIGURG to itself is not worth a line


@needs("java")
def test_java_is_stopped_by_its_parent(lab: Lab) -> None:
    (lab.subject.folder / "Main.java").write_text(JAVA)
    text = """
mkfifo said; java -XX:TieredStopAtLevel=1 -Xshare:auto Main.java >said & exec 3<said
read -r line <&3; echo $line; kill $!; read -r line <&3; echo $line; wait $!; echo $?
"""
    _says(lab, "bash", "-c", text, said=b"started\nstopped\n143\n")
