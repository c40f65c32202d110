"""Kernels of Debian's releases, each booted in an emulator: `make test-kernels`, or

    python -m tests.tools.kernels bullseye trixie trixie-arm64

The machine's whole system is a small root (tests/support/roots.py) in its initial RAM disk. On
x86_64 dist/sigwrap runs in it, on aarch64, for which there is no binary, the package, with Debian's
Python. It needs qemu-system-x86_64 and qemu-system-aarch64, and root, but neither network nor disk.
A kernel takes a minute or two, one of aarch64 a few. What it printed is shown where something isn't
as it should be.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from tests.support import roots

ROOT = Path(__file__).parents[2]
BINARY = ROOT / "dist" / "sigwrap"
# And from which of them on the policy's file_rules are held, and no signal leaves by a side door.
KERNELS = {
    "bullseye": "5.10",
    "bookworm": "6.1",
    "trixie": "6.12",
    "bookworm-arm64": "6.1",
    "trixie-arm64": "6.12",
}
WITH_LANDLOCK = "6.12"
MACHINES = {
    "amd64": ("qemu-system-x86_64", "-cpu", "max", "-append", "console=ttyS0 quiet panic=-1"),
    "arm64": (
        *("qemu-system-aarch64", "-M", "virt", "-cpu", "max,pauth-impdef=on"),
        *("-smp", "2", "-append", "console=ttyAMA0 quiet panic=-1"),
    ),
}
ON_EACH = ("-accel", "tcg", "-m", "1024", "-nographic", "-no-reboot", "-nic", "none")
WHEELS = ("manylinux2014_aarch64", "manylinux_2_28_aarch64")
NEEDED = ("busybox", "apt-get", "dpkg-deb")
LONGEST_S = 900

INIT = """#!/bin/sh
/bin/busybox --install -s /bin 2>/dev/null
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
export SIGWRAP_STORE=/tmp/store-$(id -u) HOME=/tmp SIGWRAP_UNTRIED=1
sigwrap -p /policy.yaml -- sh -c '
    id || echo denied $?; uname; date
    sleep 60 & kill -TERM $!; wait $!; echo signalled $?; kill -INT $$'
echo status $?
sigwrap report >$SIGWRAP_STORE.report; echo report $?
grep -E '^(without|why)' $SIGWRAP_STORE.report
sigwrap verify >/dev/null; echo verified $?
sigwrap -- sh -c 'exit 3'; echo shipped $?
sigwrap-forward -- sh -c 'exit 7'; echo forward $?
[ ! -e /odd.py ] || sigwrap -p /policy.yaml -- python3.11 /odd.py
"""
# Of a pointer aarch64 ignores the upper byte, where a process asks for it, and of a call's number
# the upper half.
ODD = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(55, 1, 0, 0, 0)  # PR_SET_TAGGED_ADDR_CTRL
path = ctypes.create_string_buffer(b"/bin/id")
words = (ctypes.c_void_p * 2)(ctypes.addressof(path), None)
for tag in 0, 1, 0xb4:
    tagged = [ctypes.c_void_p(ctypes.addressof(each) | tag << 56) for each in (path, words)]
    for name, number in ("plain", 221), ("odd", 221 | 0xdead << 32):
        libc.syscall(ctypes.c_long(number), *tagged, None)
        print("tag", tag, name, ctypes.get_errno(), flush=True)
"""
POLICY = """
version: 1
name: on-a-kernel
extends: agent-observe
command_rules:
  - {name: no-id, commands: [id], decision: deny, message: no ids here}
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
    *("sigwrap: denied: id: no ids here (rule no-id, policy on-a-kernel)", "denied 126"),
    *("in its place", "recorded", "signalled 143", "status 130", "report 0"),
    *("why      exit 130: SIGINT from", "verified 0", "shipped 3", "forward 7"),
)
EXPECTED_THERE = tuple(f"tag {tag} {name} 13" for tag in (0, 1, 180) for name in ("plain", "odd"))
WITHOUT_LANDLOCK = "without  landlock: it needs Linux 6.12 with Landlock"


def main(asked: list[str]) -> int:
    names = asked or list(KERNELS)
    for unknown in set(names) - set(KERNELS):
        raise SystemExit(
            f"{unknown}: no release whose kernel is known; there are {', '.join(KERNELS)}"
        )
    emulators = {MACHINES[machine_of(name)][0] for name in names}
    if missing := [each for each in (*sorted(emulators), *NEEDED) if not shutil.which(each)]:
        packages = "qemu-system-x86, qemu-system-arm, busybox"
        raise SystemExit(f"not here: {', '.join(missing)} (Debian: {packages})")
    if os.getuid() != 0:
        raise SystemExit("it takes root, to make the machine's files")
    if "amd64" in map(machine_of, names) and not BINARY.exists():
        raise SystemExit(f"{BINARY} is missing: make binary")
    failed = [name for name in names if not holds(name)]
    return 1 if failed else 0


def machine_of(name: str) -> str:
    return name.partition("-")[2] or "amd64"


def holds(name: str) -> bool:
    release, _, other_machine = name.partition("-")
    with tempfile.TemporaryDirectory() as scratch:
        said = booted(Path(scratch), release, other_machine)
    version = re.search(r"kernel (\d\S+)$", said, re.MULTILINE)
    missing = [f"Linux {KERNELS[name]}"] if not version else []
    expected = EXPECTED + (EXPECTED_THERE if other_machine else ())
    for part in re.split(r"^user \d+$", said, flags=re.MULTILINE)[1:] or [""]:
        lines = part.splitlines()
        missing += [each for each in expected if not any(line.startswith(each) for line in lines)]
        is_without = any(line.startswith(WITHOUT_LANDLOCK) for line in lines)
        if is_without is (KERNELS[name] == WITH_LANDLOCK):
            missing.append("what is said of Landlock")
    if "the end" not in said:
        missing.append("the end")
    sys.stdout.write(f"{name}, Linux {version[1] if version else '?'}: ")
    sys.stdout.write(f"missing: {missing}\n{said}\n" if missing else "all of it holds\n")
    sys.stdout.flush()
    return not missing


def booted(folder: Path, release: str, other_machine: str) -> str:
    kernel = kernel_of(folder / "kernel", release, other_machine)
    system, disk = folder / "root", folder / "disk"
    if other_machine:
        put_package(system, other_machine)
    else:
        put_binary(system)
    disk.write_bytes(gzip.compress(initial_disk(system), 1))
    emulator = MACHINES[other_machine or "amd64"]
    line = [*emulator, *ON_EACH, "-kernel", str(kernel), "-initrd", str(disk)]
    machine = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        said, _ = machine.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        machine.kill()
        said, _ = machine.communicate()
    return said.decode("utf-8", "replace").replace("\r", "")


def kernel_of(folder: Path, release: str, other_machine: str) -> Path:
    folder.mkdir()
    settings = roots.settings_for(folder, release, other_machine)
    image = f"linux-image-cloud-{other_machine or 'amd64'}"
    depends = ["apt-cache", *settings, "depends", image]
    said = subprocess.run(depends, capture_output=True, text=True, check=True).stdout
    package = re.search(r"Depends: (linux-image-\S+)", said)
    assert package, said
    subprocess.run(["apt-get", "-qq", *settings, "download", package[1]], cwd=folder, check=True)
    (archive,) = folder.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", str(archive), str(folder)], check=True)
    return next(folder.glob("boot/vmlinuz-*"))


def put_binary(folder: Path) -> None:
    shutil.copytree(roots.small("bookworm"), folder, symlinks=True)
    shutil.copy(BINARY, folder / "bin")
    (folder / "bin" / "sigwrap-forward").symlink_to("sigwrap")


def put_package(folder: Path, machine: str) -> None:
    shutil.copytree(roots.with_python(machine), folder, symlinks=True)
    packages = folder / "usr" / "lib" / "python3.11" / "dist-packages"
    of_this_machine = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(ROOT / "sigwrap", packages / "sigwrap", ignore=of_this_machine)
    shutil.copytree(ROOT / "policies", packages / "sigwrap" / "policies")
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(packages)]
    pip += ["--python-version", "3.11", "--only-binary=:all:"]
    pip += [f"--platform={each}" for each in WHEELS]
    subprocess.run([*pip, *needed], check=True)
    for name in ("sigwrap", "sigwrap-forward"):
        lines = (ROOT / "build" / "scripts" / name).read_text().splitlines(keepends=True)
        (folder / "bin" / name).write_text("".join(["#!/usr/bin/python3.11\n", *lines[1:]]))
        (folder / "bin" / name).chmod(0o755)
    (folder / "odd.py").write_text(ODD)


def initial_disk(folder: Path) -> bytes:
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
