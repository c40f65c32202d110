"""A binary that cannot start prints one line that says why; docs/troubleshooting.md has it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.binary.conftest import Run

pytestmark = [
    pytest.mark.binary,
    pytest.mark.skipif(os.getuid() != 0, reason="needs root"),
]

PAGE = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")


@pytest.fixture
def everybodys(binary: Path, environment: dict[str, str]) -> Iterator[Path]:
    """The binary where every user may run it, and unpack it; and not below /tmp."""
    folder = Path(tempfile.mkdtemp(dir="/run", prefix="sigwrap-test-"))
    folder.chmod(0o777)
    shutil.copy(binary, folder)
    environment |= {"TMPDIR": str(folder), "HOME": str(folder)}
    del environment["SIGWRAP_STORE"]
    yield folder
    shutil.rmtree(folder)


def _is_in_page(line: str) -> bool:
    """But for what differs from machine to machine."""
    shown = re.sub(r"/\S*?_MEI\w+", "/tmp/_MEI…", line)
    shown = re.sub(r"^(sigwrap: )\S+(?=: (?:set|no space))", r"\1…", shown)
    shown = re.sub(r"/\S*/libm.so.6", "/lib/x86_64-linux-gnu/libm.so.6", shown)
    shown = re.sub(r"GLIBC_[0-9.]+", "GLIBC_2.35", shown)
    shown = re.sub(r"\(required by \S+\)", "(required by …)", shown)
    shown = re.sub(r"libpython3\.\d+\.so", "libpython3.11.so", shown)
    shown = re.sub(r"^(sigwrap: /proc is missing, ).*", r"\1…", shown)
    return f"`{shown}`" in PAGE


def _in_mounts(run: Run, mount: str, *line: str | Path) -> subprocess.CompletedProcess[str]:
    """`mount` is done before, where nobody else sees it."""
    return run("unshare", "-m", "sh", "-c", f'{mount}; exec "$@"', "sh", *line)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("noexec", "failed to map segment from shared object (noexec /tmp? set TMPDIR)"),
        ("size=9m", ": no space left, set TMPDIR"),
    ],
)
def test_a_folder_that_it_can_t_use(
    binary: Path, run: Run, environment: dict[str, str], options: str, said: str
) -> None:
    mount = f"mount -t tmpfs -o {options} none {environment['TMPDIR']}"
    done = _in_mounts(run, mount, binary, "--", "echo", "ran")
    line, *reason = done.stderr.splitlines()
    assert line.startswith("sigwrap: ")
    assert line.endswith(said)
    assert _is_in_page(line)
    assert reason in ([], ["fwrite: No space left on device"])
    assert (done.returncode, done.stdout) == (255, "")


def test_no_folder_at_all(everybodys: Path, run: Run) -> None:
    folders = filter(os.path.isdir, ("/var/tmp", "/usr/tmp", "/tmp"))
    mount = "; ".join(f"mount -t tmpfs -o ro none {folder}" for folder in folders)
    done = _in_mounts(
        run, f"{mount}; export TMPDIR=/tmp; cd /", everybodys / "sigwrap", "--", "echo", "ran"
    )
    assert done.stderr == "sigwrap: /tmp is unusable: set TMPDIR\n"
    assert _is_in_page(done.stderr.strip())
    assert (done.returncode, done.stdout) == (255, "")


def test_an_older_libc(binary: Path, run: Run, environment: dict[str, str], tmp_path: Path) -> None:
    """One whose libm has no version that Python asks for; the bootloader itself needs none."""
    ours = Path(next(filter(os.path.exists, _places_of("libm.so.6"))))
    older = tmp_path / "libm.so.6"
    older.write_bytes(ours.read_bytes().replace(b"GLIBC_2.", b"GLIBC_1."))
    done = run(binary, "--", "echo", "ran", env=environment | {"LD_LIBRARY_PATH": str(tmp_path)})
    (line,) = done.stderr.splitlines()
    assert re.search(r"libm\.so\.6: version `GLIBC_2\.\d+' not found \(required by ", line)
    assert _is_in_page(line)
    assert (done.returncode, done.stdout) == (255, "")


def _places_of(library: str) -> list[str]:
    return [f"{folder}/{library}" for folder in ("/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64")]


def test_a_umask_that_allows_nothing(everybodys: Path, run: Run) -> None:
    words = (everybodys / "sigwrap", "--", "echo", "ran")
    done = run(*NOBODY, "sh", "-c", 'umask 777; exec "$@"', "sh", *words)
    line, reason = done.stderr.splitlines()
    assert line.endswith(": set TMPDIR or check the umask")
    assert _is_in_page(line)
    assert reason == "fopen: Permission denied"
    assert (done.returncode, done.stdout) == (255, "")


def test_a_small_limit_of_file_sizes(binary: Path, run: Run) -> None:
    done = run("bash", "-c", 'ulimit -f 100; "$0" -- echo ran; echo $?', binary)
    assert done.stdout == "153\n"
    assert "File size limit exceeded" in done.stderr
    assert "`File size limit exceeded`" in PAGE


def test_no_more_processes(everybodys: Path, run: Run) -> None:
    words = (everybodys / "sigwrap", "--", "echo", "ran")
    done = run(*NOBODY, "bash", "-c", 'ulimit -u 0; exec "$@"', "bash", *words)
    assert _is_in_page(done.stderr.strip())
    assert (done.returncode, done.stdout) == (1, "")


def test_a_caller_that_ignores_the_end_of_its_children(binary: Path, run: Run) -> None:
    done = run("env", "--ignore-signal=CHLD", binary, "--", "echo", "ran")
    assert _is_in_page(done.stderr.strip())
    assert (done.returncode, done.stdout) == (1, "ran\n")


def test_no_proc(binary: Path, run: Run) -> None:
    done = _in_mounts(run, "mount -t tmpfs none /proc", binary, "--", "echo", "ran")
    assert _is_in_page(done.stderr.strip())
    assert (done.returncode, done.stdout) == (125, "")
