"""A run's status, its streams, and what goes wrong before there is one."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.harness import EXECS, PYTHON, REFUSED, Sigwrap
from tests.support.programs import script
from tests.support.waiting import PATIENCE_S


@pytest.mark.promise("exit status")
def test_the_commands_own_status_is_ours(sigwrap: Sigwrap) -> None:
    for status in (0, 125, 255):
        assert sigwrap.run("--", "sh", "-c", f"exit {status}").returncode == status


@pytest.mark.promise("exit status")
@pytest.mark.parametrize("name", ["SIGKILL", "SIGPIPE"])
def test_death_by_a_signal_is_128_and_its_number(sigwrap: Sigwrap, name: str) -> None:
    number = signal.Signals[name]
    done = sigwrap.run("--", "sh", "-c", f"ulimit -c 0; kill -{int(number)} $$")
    assert done.returncode == 128 + number
    (ended,) = sigwrap.sealed_events("session_ended")
    assert ended.payload["exit_status"] == 128 + number
    (died,) = sigwrap.events("process_exited")
    assert died.payload["signal_name"] == name


@pytest.mark.promise("transparent")
def test_it_runs_as_any_user_and_the_log_is_whole(as_user: Sigwrap) -> None:
    done = as_user.run("--", "id", "-u")
    expected = os.getuid() if as_user.user is None else as_user.user
    assert (done.returncode, done.stdout, done.stderr) == (0, b"%d\n" % expected, b"")
    as_user.verify(ended=True)
    (first, *_, last) = as_user.events()
    assert (first.type, last.type) == ("session_started", "session_ended")
    assert first.payload["uid"] == expected
    assert last.payload["unrecorded"] == 0


def test_streams_carry_any_bytes(sigwrap: Sigwrap) -> None:
    everything = bytes(range(256)) * 4096
    done = sigwrap.run("--", "sh", "-c", "tee /dev/fd/2", input=everything)
    assert (done.returncode, done.stdout, done.stderr) == (0, everything, everything)


@pytest.mark.parametrize("locale", ["C", "xx_YY.nonsense"])
def test_arguments_arrive_as_they_are(sigwrap: Sigwrap, locale: str) -> None:
    odd = (b"\xff\xfe", b"caf\xe9", "\u2603", "\U0001f600", "a b", "c\nd", "'", "\\", "$(x)", "*")
    line = ("printf", "[%s]", "", "--", "-x", *odd, "--help", "")
    native = sigwrap.native(*line)
    done = sigwrap.run("--", *line, env={"LC_ALL": locale})
    assert (done.returncode, done.stdout) == (0, native.stdout)
    (exec_event,) = sigwrap.sealed_events(*EXECS)
    told = [os.fsencode(word) for word in exec_event.payload["argv"]]
    assert told == [os.fsencode(word) for word in line]
    assert not exec_event.payload["truncated"]


def test_no_utf8_in_the_environment_the_path_and_the_folder(
    sigwrap: Sigwrap, tmp_path: Path
) -> None:
    folder = os.fsencode(tmp_path) + b"/f\xff"
    os.mkdir(folder)
    program = os.path.join(folder, b"p\xfe")
    with open(program, "wb") as text:
        text.write(b'#!/bin/sh\nprintf "%s|" "$ODD"; pwd\n')
    os.chmod(program, 0o755)
    line = sigwrap.line("--", b"p\xfe")
    env = {os.fsencode(name): os.fsencode(value) for name, value in sigwrap.env.items()}
    env |= {b"ODD": b"\xff=\xfe", b"N\xff": b"1", b"PATH": folder + b":" + env[b"PATH"]}
    done = subprocess.run(
        line, env=env, cwd=folder, capture_output=True, timeout=PATIENCE_S, check=False
    )
    assert done.stderr == b""
    assert (done.returncode, done.stdout) == (0, b"\xff=\xfe|" + folder + b"\n")
    sigwrap.verify(ended=True)


# What can't be run


def test_what_is_not_found_is_127_and_what_is_not_executable_is_126(
    sigwrap: Sigwrap, tmp_path: Path
) -> None:
    (tmp_path / "plain").write_text("#!/bin/sh\necho ran\n")
    script(tmp_path, "no-interpreter", "#!/no/such/interpreter\n")
    script(tmp_path, "folder-as-interpreter", "#!/tmp\n")
    for words, status, said in (
        ("no-such-program-at-all", (127,), "no-such-program-at-all: command not found"),
        ("-p ci npm start", (127,), "-p: command not found on PATH (options go before --)"),
        ("./absent", (127,), ""),
        ("./plain", (126,), "not executable"),
        ("/tmp", (126,), "is a directory"),
        ("./no-interpreter", (126, 127), "./no-interpreter"),
        ("./folder-as-interpreter", (126,), ""),
    ):
        done = sigwrap.run("--", *words.split())
        assert done.returncode in status and done.stdout == b""
        (line,) = done.stderr.decode().splitlines()
        assert line.startswith("sigwrap: ") and said in line
    assert sigwrap.run("--", "").returncode == 127
    sigwrap.verify(ended=True)


def test_a_script_without_a_first_line_is_run_by_sh(sigwrap: Sigwrap, tmp_path: Path) -> None:
    """A folder of its name earlier on PATH is passed over."""
    (tmp_path / "first" / "bare").mkdir(parents=True)
    (tmp_path / "second").mkdir()
    script(tmp_path / "second", "bare", 'echo "ran $1 $#"; exit 7\n')
    env = {"PATH": f"{tmp_path}/first:{tmp_path}/second:{os.environ['PATH']}"}
    done = sigwrap.run("--", "bare", "one", "two words", env=env)
    assert (done.returncode, done.stdout) == (7, b"ran one 2\n")


# A store that can't be written


def _refused(done: subprocess.CompletedProcess[bytes], marker: Path) -> str:
    assert (done.returncode, done.stdout) == (REFUSED, b"")
    (line,) = done.stderr.decode().splitlines()
    assert "Traceback" not in line
    assert not marker.exists()
    return line


@pytest.mark.promise("fail closed")
@pytest.mark.fault(
    "the store",
    "a file in place of the store directory",
    sees="status 125",
    keeps="nothing ran",
)
def test_a_file_in_the_stores_way(sigwrap: Sigwrap, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("mine")
    marker = tmp_path / "ran"
    line = _refused(sigwrap.run("--", "touch", str(marker)), marker)
    assert str(tmp_path / "store") in line
    assert "--store" in line
    assert (tmp_path / "store").read_text() == "mine"


@pytest.mark.fault(
    "the store",
    "no permission to write",
    sees="status 125",
    keeps="nothing ran",
)
@pytest.mark.skipif(os.getuid() != 0, reason="needs root to make a folder that isn't ours")
def test_a_store_of_somebody_else(as_user: Sigwrap) -> None:
    if as_user.user is None:
        pytest.skip("root may write anywhere")
    as_user.store.mkdir(0o555)
    os.chown(as_user.store, 0, 0)
    marker = as_user.folder / "ran"
    line = _refused(as_user.run("--", "touch", str(marker)), marker)
    assert "Permission denied" in line


def _fill(folder: Path) -> None:
    with (folder / "filler").open("wb", buffering=0) as filler:
        try:
            while filler.write(bytes(4096)):
                pass
        except OSError:
            pass


@pytest.mark.fault(
    "the store",
    "disk full at the start",
    sees="status 125",
    keeps="nothing ran",
)
def test_a_store_on_a_full_file_system(sigwrap: Sigwrap, small_disk: Path, tmp_path: Path) -> None:
    _fill(small_disk)
    marker = tmp_path / "ran"
    done = sigwrap.run("--store", str(small_disk / "store"), "--", "touch", str(marker))
    line = _refused(done, marker)
    assert str(small_disk) in line


@pytest.mark.fault(
    "the store",
    "disk full during the run",
    sees="one warning; what cannot be logged is denied",
    keeps="all that took effect; `unrecorded` in `session_ended` counts the rest",
)
def test_a_store_that_fills_up_denies_what_it_cannot_record(
    sigwrap: Sigwrap, small_disk: Path
) -> None:
    """Every exec that ran is in the log, the others were denied, and it was said once."""
    loop = (
        'i=0; while [ $i -lt 2000 ]; do i=$((i+1)); /bin/echo "$i" "$PAD" || break; done 2>&1;'
        " echo end"
    )
    env = {"PAD": "x" * 2000, "SIGWRAP_STORE": str(small_disk / "store")}
    done = sigwrap.run("--", "dash", "-c", loop, env=env)
    lines = done.stdout.decode().splitlines()
    assert lines[-1] == "end"
    assert done.stderr.decode().count("sigwrap denies every exec and signal") == 1
    ran = [int(line.split()[0]) for line in lines if line.endswith("xxxx")]
    assert ran == list(range(1, len(ran) + 1))
    sigwrap.store = small_disk / "store"
    recorded = [
        int(event.payload["argv"][1])
        for event in sigwrap.events(*EXECS)
        if event.payload["argv"][0] == "/bin/echo"
    ]
    assert recorded == ran


@pytest.mark.fault(
    "terminal and streams",
    "standard streams are closed",
    sees="as natively",
    keeps="complete",
)
def test_closed_standard_streams_are_no_obstacle(sigwrap: Sigwrap, tmp_path: Path) -> None:
    """They must not become descriptors of ours, and COMMAND finds them closed."""
    text = """
import os
seen = [os.path.exists(f"/proc/self/fd/{fd}") for fd in (0, 1, 2)]
open("seen", "w").write(repr(seen))
"""
    words = sigwrap.line("--", *PYTHON, "-c", text)
    done = sigwrap.native("bash", "-c", 'exec "$@" <&- >&- 2>&-', "bash", *words)
    assert done.returncode == 0
    assert (tmp_path / "seen").read_text() == "[False, False, False]"
    sigwrap.verify(ended=True)


@pytest.mark.fault(
    "several sessions",
    "eight sessions in one store",
    sees="nothing",
    keeps="complete",
)
@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_many_runs_share_a_store(sigwrap: Sigwrap) -> None:
    running = [sigwrap.start("--", *PYTHON, "-c", f"print({number})") for number in range(8)]
    outputs = [process.communicate(timeout=PATIENCE_S) for process in running]
    assert outputs == [(b"%d\n" % number, b"") for number in range(8)]
    assert [process.returncode for process in running] == [0] * 8
