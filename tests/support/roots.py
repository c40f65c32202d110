"""Root folders of other systems, from Debian's packages: made once, kept outside of the checkout.

A small one is a C library, zlib, dash and busybox, and takes seconds; a full one is what
debootstrap makes. Both are only read: what is to be tried there, and /tmp, are mounted over them
where nobody else sees it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

RELEASES = {"bullseye": (2, 31), "bookworm": (2, 36), "trixie": (2, 41)}
"""And their glibc."""
WITHOUT_LIBC = "busybox alone"

PACKAGES = ("libc6", "zlib1g", "dash", "busybox", "util-linux", "libcap-ng0")
PYTHON_PACKAGES = (
    *("python3.11", "python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib"),
    *("libsqlite3-0", "libexpat1", "libffi8", "libssl3", "libbz2-1.0", "liblzma5", "libuuid1"),
    *("libstdc++6", "libgcc-s1", "libtinfo6", "libncursesw6", "libreadline8"),
)
OTHER_PYTHONS = {
    "bullseye": (
        *("python2.7-minimal", "libpython2.7-minimal", "python3.9-minimal"),
        *("libpython3.9-minimal", "libexpat1"),
    ),
    "trixie": (
        *("python3.13", "python3.13-minimal", "libpython3.13-minimal", "libpython3.13-stdlib"),
        *("libsqlite3-0", "libexpat1", "libffi8", "libssl3t64", "libbz2-1.0", "liblzma5"),
        *("libstdc++6", "libgcc-s1", "libzstd1"),
    ),
}
MERGED = ("bin", "sbin", "lib", "lib64")
APPLETS = ("cat", "env", "id", "ls", "sleep", "true")
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sigwrap-roots"

# $0 is the root, $1 the folder that is to be /mnt there, $2 who runs what follows.
_ENTER = """
set -e
root=$0 folder=$1 user=$2
shift 2
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount --bind "$folder" "$root/mnt"
exec chroot --userspec="$user:$user" --groups= "$root" "$@"
"""


class CantBeMade(Exception):
    """Why: the last line of whoever failed."""


def entered(root: Path, folder: Path, user: int, *words: str) -> Sequence[str]:
    """The line that runs `words` there."""
    new = ("unshare", "--mount", "--propagation", "private", "sh", "-c", _ENTER)
    return [*new, str(root), str(folder), str(user), *words]


def small(release: str) -> Path:
    if release == WITHOUT_LIBC:
        return _kept("static", lambda folder: _unpack(folder, "", ("busybox-static",)))
    return _kept(f"small-{release}", lambda folder: _unpack(folder, release, PACKAGES))


def with_other_pythons(release: str) -> Path:
    packages = (*PACKAGES, *OTHER_PYTHONS[release])
    return _kept(f"pythons-{release}", lambda folder: _unpack(folder, release, packages))


def with_python(machine: str) -> Path:
    """A small one of bookworm for another machine, whose programs nobody can run here."""
    packages = (*PACKAGES, *PYTHON_PACKAGES)
    return _kept(f"python-{machine}", lambda folder: _unpack(folder, "bookworm", packages, machine))


def full(release: str) -> Path:
    return _kept(f"full-{release}", lambda folder: _bootstrap(folder, release))


def _kept(name: str, make: Callable[[Path], None]) -> Path:
    root = CACHE / name
    if root.exists():
        return root
    CACHE.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=CACHE, prefix=f".{name}-"))
    try:
        folder = unfinished / "root"
        folder.mkdir()
        make(folder)
        for each in ("dev", "proc", "tmp", "mnt"):
            (folder / each).mkdir(exist_ok=True)
        try:
            folder.rename(root)
        except OSError:
            if not root.exists():  # else somebody else has made it meanwhile
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return root


def _bootstrap(folder: Path, release: str) -> None:
    _do("debootstrap", "--variant=minbase", release, str(folder))


def _unpack(folder: Path, release: str, packages: Sequence[str], machine: str = "") -> None:
    for name in MERGED:
        (folder / "usr" / name).mkdir(parents=True)
        (folder / name).symlink_to(f"usr/{name}")
    for package in downloaded(folder.parent, release, packages, machine):
        tar = ("tar", "-x", "--keep-directory-symlink", "-C", str(folder))
        archive = subprocess.run(
            ["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE, check=True
        )
        subprocess.run(tar, input=archive.stdout, check=True)
    shell = "dash" if (folder / "bin" / "dash").exists() else "busybox"
    for name in ("sh", *APPLETS):
        (folder / "bin" / name).unlink(missing_ok=True)
        (folder / "bin" / name).symlink_to(shell if name == "sh" else "busybox")


def downloaded(
    folder: Path, release: str, packages: Sequence[str], machine: str = ""
) -> list[Path]:
    """From where this machine has its own packages from, and as apt checks them; of no release,
    its own."""
    settings = settings_for(folder, release, machine) if release else []
    _do("apt-get", "-qq", *settings, "-oAPT::Sandbox::User=", "download", *packages, cwd=folder)
    return sorted(folder.glob("*.deb"))


def settings_for(folder: Path, release: str, machine: str = "") -> list[str]:
    """`machine`: another than this, as Debian calls it."""
    for name in ("lists/partial", "archives/partial"):
        (folder / name).mkdir(parents=True)
    line = f"deb [signed-by={KEYS}] {_mirror()} {release} main\n"
    (folder / "sources.list").write_text(line)
    (folder / "status").touch()
    settings = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State": folder,
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder,
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled": "false",
    }
    if machine:
        settings |= {"APT::Architecture": machine, "APT::Architectures": machine}
    options = [f"-o{name}={value}" for name, value in settings.items()]
    _do("apt-get", "-qq", *options, "update")
    return options


def _mirror() -> str:
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Identifier: Packages"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as failure:
        raise CantBeMade(f"no apt here: {failure}") from failure
    for line in said.splitlines():
        if line.rstrip("/").endswith("/debian"):
            return line
    raise CantBeMade("this machine has no packages of Debian")


def _do(*words: str, cwd: Path | None = None) -> None:
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd)
    except OSError as failure:
        raise CantBeMade(f"{words[0]}: {failure.strerror}") from failure
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise CantBeMade(f"{words[0]}: {said[-1] if said else done.returncode}")
