"""`via: stub` with `record: true`: the caller becomes a stub, the command its child, and what
passes between them is in the log."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.exec.test_fidelity import ENDS
from tests.support.harness import PYTHON, UNDER_TEST, Sigwrap
from tests.support.recording import prepared, stored
from tests.support.waiting import PATIENCE_S, reader

GIB = 1 << 30


def test_it_ends_as_its_command_did(as_user: Sigwrap, programs: Path) -> None:
    line = prepared(as_user, '#!/bin/bash\neval "$1"\n', "limits: {}")
    done = as_user.run(*line, *PYTHON, str(programs / "ends.py"))
    assert (done.stdout.decode().split(), done.stderr) == (ENDS, b"")
    assert not list(as_user.folder.glob("core*"))
    assert not (as_user.folder / "original-ran").exists()
    reasons = [each.payload["reason"] for each in as_user.sealed_events("recording_ended")]
    assert reasons == ["the command ended"] * len(ENDS)


@pytest.mark.promise("recorded commands")
def test_what_it_reads_and_writes_is_in_the_log(as_user: Sigwrap) -> None:
    text = "#!/bin/sh\necho out; echo err >&2; cat; printf '\\377\\0'\n"
    done = as_user.run(*prepared(as_user, text), "./tool", input=b"in\xc3\xa9\n")
    assert (done.returncode, done.stdout) == (0, b"out\nin\xc3\xa9\n\xff\x00")
    assert done.stderr == b"err\n"
    assert stored(as_user.sealed_events("io_recorded"), "stdin") == b"in\xc3\xa9\n"
    assert stored(as_user.sealed_events("io_recorded"), "stdout") == done.stdout
    assert stored(as_user.sealed_events("io_recorded"), "stderr") == done.stderr
    (redirected,) = as_user.events("exec_redirected")
    assert (redirected.payload["via"], redirected.payload["record"]) == ("stub", True)
    assert redirected.payload["replacement"] == str(as_user.folder / "real-tool")
    (ended,) = as_user.events("recording_ended")
    counts = {name: ended.payload[name] for name in ("stdin", "stdout", "stderr")}
    assert counts == {"stdin": 5, "stdout": 11, "stderr": 4}
    (allowed,) = [each for each in as_user.events("exec_allowed") if each.pid == ended.pid][:1]
    assert allowed.payload["rule_name"] == "recorder"
    assert ended.payload["stub_pid"] == redirected.pid


@pytest.mark.promise("replay")
def test_replay_shows_what_was_recorded(as_user: Sigwrap) -> None:
    program = "import subprocess; [subprocess.run(['./tool', word]) for word in 'ab']"
    text = '#!/bin/sh\nprintf "$1\\\\377\\\\n"; echo e >&2\n'
    done = as_user.run(*prepared(as_user, text), *PYTHON, "-c", program)
    assert (done.stdout, done.stderr) == (b"a\xff\nb\xff\n", b"e\ne\n")
    _, second = [each.pid for each in as_user.sealed_events("recording_ended")]
    replay = (UNDER_TEST, "replay", "--instant")
    assert as_user.native(*replay, "--recorded", "stdout").stdout == done.stdout
    only = as_user.native(*replay, "--recorded", "stdout", "--pid", str(second))
    assert only.stdout == b"b\xff\n"
    assert b"stderr  2 B  e\\n" in as_user.native(*replay).stdout
    report = as_user.native(UNDER_TEST, "report").stdout.decode()
    assert f"pid {second}  stdin 0 B, stdout 3 B, stderr 2 B  the command ended" in report
    for words in (["--pid", "1"], ["--recorded", "stdout", "--json"]):
        refused = as_user.native(*replay, *words)
        assert refused.returncode == 125
        assert refused.stderr.count(b"\n") == 1


def _size() -> int:
    return GIB if os.environ.get("SIGWRAP_TEST_GIB") else 1 << 20


def test_much_of_it_through_both_ways(as_user: Sigwrap, programs: Path) -> None:
    size = _size()
    line = prepared(as_user, "#!/bin/sh\nexec cat\n")
    process = as_user.start(*line, *PYTHON, str(programs / "copy_both_ways.py"), str(size))
    out, err = process.communicate(b"", PATIENCE_S * max(1, size >> 24))
    assert (out.decode().split(), err) == ([str(size), "True", "0"], b"")
    (ended,) = as_user.sealed_events("recording_ended")
    assert (ended.payload["stdin"], ended.payload["stdout"]) == (size, size)


def test_the_end_of_input_is_passed_on_while_output_goes_on(as_user: Sigwrap) -> None:
    text = "#!/bin/sh\necho ready; cat >/dev/null; echo after the end\n"
    process = as_user.start(*prepared(as_user, text), "./tool")
    said = reader(process.stdout)
    assert said.line() == b"ready"
    process.stdin.close()
    assert said.line() == b"after the end"
    assert process.wait(PATIENCE_S) == 0


def test_a_slow_reader_holds_the_command_up_and_nobody_else(
    as_user: Sigwrap, programs: Path
) -> None:
    """The command writes more than all buffers hold; the rest of the session goes on."""
    text = "#!/bin/sh\nhead -c 3000000 /dev/zero; echo end >&2\n"
    done = as_user.run(*prepared(as_user, text), *PYTHON, str(programs / "reads_slowly.py"))
    assert done.stdout.decode().splitlines() == ["True None", "2999999 b'end\\n' 0"]


def test_one_stream_that_nobody_reads_does_not_hold_up_the_other(
    as_user: Sigwrap, programs: Path
) -> None:
    """As natively, for a command that writes both from threads of its own."""
    text = (
        f"#!{PYTHON[0]} -IS\nimport os, threading\n"
        "threading.Thread(target=lambda: os.write(1, bytes(2000000))).start()\n"
        "os.write(2, b'free\\n')\nos.write(2, os.read(0, 100))\n"
    )
    done = as_user.run(*prepared(as_user, text), *PYTHON, str(programs / "reads_one_stream.py"))
    assert done.stdout == b"b'free\\n'\nb'also free\\n' 2000000\n"


def test_a_reader_that_leaves_ends_the_command(as_user: Sigwrap) -> None:
    """Of SIGPIPE, as without us; input that it never reads doesn't stand in the way."""
    line = prepared(as_user, "#!/bin/sh\nexec yes\n")
    given = ("< /dev/null", "< <(yes)")
    text = "\n".join(f"./tool {each} | head -n 1; echo ${{PIPESTATUS[0]}}" for each in given)
    done = as_user.run(*line, "bash", "-c", text)
    assert (done.stdout, done.stderr) == (b"y\n141\n" * 2, b"")


def test_a_command_that_closes_its_streams_early(as_user: Sigwrap, programs: Path) -> None:
    """Both ends see it at once: the reader an end, the writer a closed pipe."""
    text = "#!/bin/sh\nexec <&- >&-; echo waits >&2; exec sleep 1000\n"
    done = as_user.run(*prepared(as_user, text), *PYTHON, str(programs / "sees_both_ends.py"))
    assert done.stdout == b"b'' None\n-15\n"


def test_what_the_command_did_not_read_of_a_file_is_left_to_the_next(as_user: Sigwrap) -> None:
    lines = b"".join(b"line %d\n" % i for i in range(1, 6))
    (as_user.folder / "input").write_bytes(lines)
    line = prepared(as_user, '#!/bin/sh\n[ "$1" = none ] || head -c 7\n')
    text = "while read -r l; do echo $l; ./tool none; done <input; { ./tool; cat; } <input"
    done = as_user.run(*line, "sh", "-c", text)
    assert done.stdout == lines + lines


def test_a_descendant_that_keeps_the_pipe_delays_nobody(as_user: Sigwrap) -> None:
    """All that the command itself wrote arrives; what it left behind writes to a closed pipe."""
    os.mkfifo(as_user.folder / "go")
    (as_user.folder / "go").chmod(0o666)
    left = "read x <go; trap '' PIPE; echo late || echo closed >left-behind; : >done"
    text = f'#!/bin/sh\nsh -c "{left}" 2>/dev/null &\nhead -c 100000 /dev/zero; exit 3\n'
    then = "./tool | wc -c; echo go >go; while ! [ -e done ]; do :; done; cat left-behind"
    done = as_user.run(*prepared(as_user, text), "sh", "-c", then)
    assert done.stdout.split() == [b"100000", b"closed"]
