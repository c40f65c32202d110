"""The binary on kernels of Debian's releases, each booted in an emulator: `make test-kernels`, or

    python -m tests.tools.kernels bullseye trixie

The machine's whole system is a small root (tests/support/roots.py) in its initial RAM disk, with
dist/sigwrap; it needs qemu-system-x86_64, and root, but neither network nor disk. A kernel takes a
minute or two. What it printed is shown where something isn't as it should be.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support import roots

ROOT = Path(__file__).parents[2]
BINARY = ROOT / "dist" / "sigwrap"
# And from which of them on the policy's file_rules are held, and no signal leaves by a side door.
KERNELS = {"bullseye": "5.10", "bookworm": "6.1", "trixie": "6.12"}
WITH_LANDLOCK = "6.12"
MACHINE = (
    *("qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", "1024", "-nographic"),
    *("-no-reboot", "-nic", "none", "-append", "console=ttyS0 quiet panic=-1"),
)
NEEDED = ("qemu-system-x86_64", "busybox", "apt-get", "dpkg-deb")
LONGEST_S = 900

INIT = """#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs -o mode=1777 tmp /tmp
mount -t devtmpfs dev /dev; mkdir -p /dev/pts; mount -t devpts pts /dev/pts
echo "kernel $(uname -r)"
for user in 0 65534; do
    echo "user $user"
    setpriv --reuid=$user --regid=$user --clear-groups sh /play.sh 2>&1 | cat
done
echo "the end"
poweroff -f
"""
PLAY = """
export SIGWRAP_STORE=/tmp/store-$(id -u) HOME=/tmp
sigwrap -p /policy.yaml -- sh -c '
    id || echo denied $?; uname; date
    sleep 60 & kill -TERM $!; wait $!; echo signalled $?; kill -INT $$'
echo status $?
sigwrap report >$SIGWRAP_STORE.report; echo report $?
grep -E '^(without|why)' $SIGWRAP_STORE.report
sigwrap verify >/dev/null; echo verified $?
sigwrap -- sh -c 'exit 3'; echo shipped $?
sigwrap-forward -- sh -c 'exit 7'; echo forward $?
"""
POLICY = """
version: 1
name: on-a-kernel
extends: agent-observe
command_rules:
  - {name: no-id, commands: [id], decision: deny, message: nobody is told}
  - name: other
    commands: [uname]
    decision: redirect
    redirect_to: {command: echo, args: [in its place]}
  - name: broker
    commands: [date]
    decision: redirect
    redirect_to: {command: echo, args: [recorded], via: stub, record: true}
"""
EXPECTED = (
    *("sigwrap: id: denied by rule no-id of on-a-kernel: nobody is told", "denied 126"),
    *("in its place", "recorded", "signalled 143", "status 130", "report 0"),
    *("why      exit 130: SIGINT from", "verified 0", "shipped 3", "forward 7"),
)
WITHOUT_LANDLOCK = "without  landlock: it needs Linux 6.12 with Landlock"


def main(releases: list[str]) -> int:
    for unknown in set(releases) - set(KERNELS):
        raise SystemExit(
            f"{unknown}: no release whose kernel is known; there are {', '.join(KERNELS)}"
        )
    if missing := [each for each in NEEDED if not shutil.which(each)]:
        raise SystemExit(f"not here: {', '.join(missing)} (Debian: qemu-system-x86, busybox)")
    if os.getuid() != 0:
        raise SystemExit("it takes root, to make the machine's files")
    if not BINARY.exists():
        raise SystemExit(f"{BINARY} is missing: make binary")
    failed = [release for release in releases or list(KERNELS) if not holds(release)]
    return 1 if failed else 0


def holds(release: str) -> bool:
    with tempfile.TemporaryDirectory() as scratch:
        said = booted(Path(scratch), release)
    version = re.search(r"kernel (\d\S+)$", said, re.MULTILINE)
    missing = [f"Linux {KERNELS[release]}"] if not version else []
    for part in re.split(r"^user \d+$", said, flags=re.MULTILINE)[1:] or [""]:
        lines = part.splitlines()
        missing += [each for each in EXPECTED if not any(line.startswith(each) for line in lines)]
        is_without = any(line.startswith(WITHOUT_LANDLOCK) for line in lines)
        if is_without is (KERNELS[release] == WITH_LANDLOCK):
            missing.append("what is said of Landlock")
    if "the end" not in said:
        missing.append("the end")
    sys.stdout.write(f"{release}, Linux {version[1] if version else '?'}: ")
    sys.stdout.write(f"missing: {missing}\n{said}\n" if missing else "all of it holds\n")
    sys.stdout.flush()
    return not missing


def booted(folder: Path, release: str) -> str:
    kernel, disk = kernel_of(folder / "kernel", release), folder / "disk"
    disk.write_bytes(gzip.compress(initial_disk(folder / "root"), 1))
    line = [*MACHINE, "-kernel", str(kernel), "-initrd", str(disk)]
    machine = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        said, _ = machine.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        machine.kill()
        said, _ = machine.communicate()
    return said.decode("utf-8", "replace").replace("\r", "")


def kernel_of(folder: Path, release: str) -> Path:
    folder.mkdir()
    settings = roots.settings_for(folder, release)
    depends = ["apt-cache", *settings, "depends", "linux-image-cloud-amd64"]
    said = subprocess.run(depends, capture_output=True, text=True, check=True).stdout
    package = re.search(r"Depends: (linux-image-\S+)", said)
    assert package, said
    subprocess.run(["apt-get", "-qq", *settings, "download", package[1]], cwd=folder, check=True)
    (archive,) = folder.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", str(archive), str(folder)], check=True)
    return next(folder.glob("boot/vmlinuz-*"))


def initial_disk(folder: Path) -> bytes:
    shutil.copytree(roots.small("bookworm"), folder, symlinks=True)
    shutil.copy(BINARY, folder / "bin")
    (folder / "bin" / "sigwrap-forward").symlink_to("sigwrap")
    for name in busybox_applets(folder):
        if not (folder / "bin" / name).exists():
            (folder / "bin" / name).symlink_to("busybox")
    for name, text in (("init", INIT), ("play.sh", PLAY), ("policy.yaml", POLICY)):
        (folder / name).write_text(text)
    (folder / "init").chmod(0o755)
    (folder / "sys").mkdir()
    os.mknod(folder / "dev" / "console", 0o020600, os.makedev(5, 1))
    names = "\n".join(str(each.relative_to(folder)) for each in sorted(folder.rglob("*")))
    return subprocess.run(
        ["busybox", "cpio", "-o", "-H", "newc"],
        input=names.encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        check=True,
    ).stdout


def busybox_applets(folder: Path) -> list[str]:
    line = ["chroot", str(folder), "/bin/busybox", "--list"]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout.split()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
