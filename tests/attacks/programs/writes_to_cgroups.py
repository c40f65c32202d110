"""What a user may do with a cgroup that is the user's, and what must go on working."""

import errno
import json
import os
import subprocess
import sys


def tried(attempt):
    try:
        attempt()
    except OSError as refusal:
        return errno.errorcode[refusal.errno]
    return "done"


def write(path, text=""):
    fd = os.open(path, os.O_WRONLY)
    try:
        if text:
            os.write(fd, text.encode())
    finally:
        os.close(fd)


def write_anew(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))


group, folder = sys.argv[1:]
files = {name: f"{group}/{name}" for name in ("cgroup.kill", "cgroup.freeze", "cgroup.procs")}
told = {name: tried(lambda path=path: write(path)) for name, path in files.items()}
below = f"{group}/below"
tried(lambda: os.mkdir(below))
told["below"] = tried(lambda: write(f"{below}/cgroup.kill"))
told["by a descriptor"] = tried(lambda: write(f"/proc/self/fd/{os.open(group, 0)}/cgroup.kill"))
tried(lambda: os.rmdir(below))

os.makedirs(f"{folder}/one")
os.makedirs(f"{folder}/other")
told["own"] = {
    "file": tried(lambda: write_anew(f"{folder}/one/file")),
    "rename": tried(lambda: os.rename(f"{folder}/one/file", f"{folder}/other/file")),
    "link": tried(lambda: os.link(f"{folder}/other/file", f"{folder}/one/file")),
    "null": tried(lambda: write("/dev/null")),
    "memory": tried(lambda: write(f"/proc/self/fd/{os.memfd_create('m')}")),
    "name": tried(lambda: write("/proc/self/comm", "other")),
    "proc": tried(lambda: write("/proc/self/oom_score_adj", "500")),
}
mounts = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "x", folder]
told["mounts"] = subprocess.run(mounts, stderr=subprocess.DEVNULL, check=False).returncode == 0
json.dump(told, sys.stdout)
sys.stdout.flush()
tried(lambda: write(files["cgroup.kill"], "1"))
