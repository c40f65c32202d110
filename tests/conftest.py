"""Real processes run under $SIGWRAP_UNDER_TEST, or the sigwrap beside this Python."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.support")

from sigwrap.kernel import procfs  # noqa: E402
from tests.support.backstop import Backstop, NoBackstop  # noqa: E402 (rewritten first)
from tests.support.harness import NOBODY, UNDER_TEST, Sigwrap  # noqa: E402
from tests.support.programs import COMPILER, Library  # noqa: E402
from tests.support.signal_lab import Lab  # noqa: E402

pytest_plugins = [
    "tests.support.desk",
    "tests.support.skips",
    "tests.support.tiers",
    "tests.support.times",
    "tests.support.users",
]

_FIRST_UID = 61_000

# Whoever runs the tests may ignore signals (nohup, a CI runner): the children started here must
# not, or half of them would be testing that.
for _number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE}:
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)


@pytest.fixture
def sigwrap(tmp_path: Path) -> Iterator[Sigwrap]:
    subject = Sigwrap(tmp_path, tmp_path / "store")
    yield subject
    subject.clean_up()


@pytest.fixture(
    params=[
        pytest.param(None, id="us"),
        pytest.param(
            NOBODY, id="nobody", marks=pytest.mark.skipif(os.getuid() != 0, reason="needs root")
        ),
    ]
)
def as_user(request: pytest.FixtureRequest) -> Iterator[Sigwrap]:
    """The same, as we are and as an ordinary user, in a folder that this user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="sigwrap-test-"))
    if request.param is not None:
        os.chown(folder, request.param, request.param)
    subject = Sigwrap(folder, folder / "store", request.param)
    yield subject
    subject.clean_up()
    shutil.rmtree(folder)


@pytest.fixture
def alone() -> Iterator[Sigwrap]:
    """As a user with no session but the test's."""
    if os.getuid() != 0:
        pytest.skip("needs root")
    uid = _FIRST_UID + os.getpid() % 4000
    folder = Path(tempfile.mkdtemp(prefix="sigwrap-test-"))
    os.chown(folder, uid, uid)
    subject = Sigwrap(folder, folder / "store", uid)
    yield subject
    subject.clean_up()
    shutil.rmtree(folder)


@pytest.fixture
def forward(as_user: Sigwrap) -> str:
    """Beside sigwrap; the binary is the same file under another name."""
    beside = Path(UNDER_TEST).with_name("sigwrap-forward")
    if beside.exists():
        return str(beside)
    link = as_user.folder / "sigwrap-forward"
    link.symlink_to(UNDER_TEST)
    return str(link)


@pytest.fixture
def lab(sigwrap: Sigwrap) -> Lab:
    return Lab(sigwrap)


@pytest.fixture
def users_lab(as_user: Sigwrap) -> Lab:
    return Lab(as_user)


@pytest.fixture
def backstop() -> Iterator[Backstop]:
    """For what would take the machine along if sigwrap failed."""
    try:
        subject = Backstop.make()
    except NoBackstop as why:
        pytest.skip(f"needs a limit of the kernel on a fork bomb: {why}")
    yield subject
    subject.remove()


@pytest.fixture
def held_proc() -> Iterator[None]:
    """Hold /proc as a supervisor does, and give it back for the other tests of this process."""
    names = ("_held", "_skipped", "_is_a_mount_of_ours")
    before = {name: getattr(procfs, name) for name in names}
    procfs.hold()
    held = procfs._held
    yield
    for name, value in before.items():
        setattr(procfs, name, value)
    if held is not None:
        os.close(held)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", "size=512k,mode=777", "tmpfs", str(folder)]
    mounted = subprocess.run(line, capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"can't mount a tmpfs: {mounted.stderr.decode().strip()}")
    yield folder
    # Lazy: a test that failed may have left a file open.
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture(scope="session")
def library() -> Iterator[Library]:
    subject = Library()
    yield subject
    subject.remove()


@pytest.fixture
def programs(library: Library, request: pytest.FixtureRequest) -> Path:
    """The folder `programs` beside the test, where every user may run what is in it."""
    return library.beside(request.path.parent)


@pytest.fixture
def compiled(library: Library, request: pytest.FixtureRequest) -> Path:
    """The same folder, with its C programs."""
    if COMPILER is None:
        pytest.skip("needs a C compiler")
    return library.compiled_beside(request.path.parent)
