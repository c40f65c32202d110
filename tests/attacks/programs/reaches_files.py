"""Tries to read a secret, and to change what lies outside of a folder, by every way there is. Says
of each try what came of it.

Words: the program for what Python can't, and tries as JSON: of each the folder with the secret, one
of our own, and the ways, or none for all of them."""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import socket
import subprocess
import sys

libc = ctypes.CDLL(None, use_errno=True)
HERE = -100


def call(number, *words):
    ctypes.set_errno(0)
    result = libc.syscall(number, *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def read(fd):
    with open(fd, "rb", closefd=not isinstance(fd, int)) as file:
        return file.read()


def run(*words):
    done = subprocess.run(words, capture_output=True, check=False)
    if done.returncode:
        raise OSError(errno.EACCES, done.stderr.decode().strip())
    return done.stdout


def here(make, source, name):
    """The name in our folder that the source has by then."""
    make(source, f"{work}/{name}")
    return f"{work}/{name}"


def write(path, flags=os.O_WRONLY):
    os.write(os.open(path, flags), b"changed")


def exchanged():
    os.mkdir(f"{work}/empty")
    call(316, HERE, f"{home}/.ssh".encode(), HERE, f"{work}/empty".encode(), 2)
    return read(f"{work}/empty/id")


def from_our_folder():
    os.chdir(f"{home}/.ssh")
    try:
        return read("/proc/self/cwd/id")
    finally:
        os.chdir(work)


def by_a_handle():
    handle = (ctypes.c_uint32 * 40)(128)
    call(303, HERE, secret.encode(), handle, ctypes.byref(ctypes.c_int()), 0)
    return read(call(304, os.open(home, os.O_RDONLY), handle, os.O_RDONLY))


def by_an_overlay():
    options = f"lowerdir={home}/.ssh,upperdir={work}/u,workdir={work}/w"
    line = f"mkdir {work}/u {work}/w && mount -t overlay x -o {options} {work} && cat {work}/id"
    return run("unshare", "-Urm", "sh", "-c", line)


def copied_by_the_kernel():
    with open(f"{work}/copy", "w+b") as copy:
        os.copy_file_range(os.open(secret, os.O_PATH), copy.fileno(), 100)
        return read(copy.name)


def from_a_socket_there():
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{home}/.ssh/socket")


def other():
    with open(f"{work}/other", "w") as file:
        file.write("changed")
    return f"{work}/other"


def replaced_by_a_name():
    changed = other()
    os.unlink(kept)
    os.link(changed, kept)


def its_name_given_to_a_nameless_file():
    fd = os.open(work, os.O_TMPFILE | os.O_WRONLY, 0o600)
    call(265, HERE, f"/proc/self/fd/{fd}".encode(), HERE, f"{home}/new".encode(), 0x400)


def mapped_and_written():
    mmap.mmap(os.open(kept, os.O_RDWR), 0)[0:1] = b"X"


def made_writable_by_its_flags():
    fd = os.open(kept, os.O_RDONLY)
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_RDWR)
    os.write(fd, b"changed")


WAYS = {
    # Reading
    "by_its_name": lambda: read(secret),
    "by_a_link_of_ours": lambda: read(here(os.symlink, secret, "link")),
    "by_another_name": lambda: read(here(os.link, secret, "hard")),
    "moved_here": lambda: read(here(os.rename, secret, "moved")),
    "its_folder_moved_here": lambda: read(here(os.rename, f"{home}/.ssh", "ssh") + "/id"),
    "exchanged": exchanged,
    "from_its_folder": lambda: read(os.open("id", 0, dir_fd=os.open(f"{home}/.ssh", 0))),
    "from_our_root": lambda: read(f"/proc/self/root{secret}"),
    "from_our_folder": from_our_folder,
    "through_a_path_descriptor": lambda: read(f"/proc/self/fd/{os.open(secret, os.O_PATH)}"),
    "by_a_handle": by_a_handle,
    "as_i386": lambda: run(others, "i386", secret),
    "by_a_ring": lambda: run(others, "uring", secret),
    "by_a_loaded_program": lambda: run("/bin/sh", secret),
    "mounted_here": lambda: run(
        *("unshare", "-Urm", "sh", "-c", f"mount --bind {home}/.ssh {work} && cat {work}/id")
    ),
    "by_chroot": lambda: run("unshare", "-Ur", "chroot", f"{home}/.ssh", "/id"),
    "by_an_overlay": by_an_overlay,
    "copied_by_the_kernel": copied_by_the_kernel,
    "mapped": lambda: bytes(mmap.mmap(os.open(secret, os.O_PATH), 0, prot=mmap.PROT_READ)),
    "from_a_socket_there": from_a_socket_there,
    # Changing
    "written": lambda: write(kept),
    "appended": lambda: write(kept, os.O_WRONLY | os.O_APPEND),
    "emptied_when_opened": lambda: os.close(os.open(kept, os.O_RDONLY | os.O_TRUNC)),
    "emptied": lambda: os.truncate(kept, 0),
    "emptied_by_a_descriptor": lambda: os.ftruncate(os.open(kept, os.O_RDONLY), 0),
    "deleted": lambda: os.unlink(kept),
    "replaced": lambda: os.rename(other(), kept),
    "replaced_by_a_name": replaced_by_a_name,
    "linked_here_and_written": lambda: write(here(os.link, kept, "notes")),
    "written_through_a_link": lambda: write(here(os.symlink, kept, "to-notes")),
    "its_name_given_to_a_nameless_file": its_name_given_to_a_nameless_file,
    "a_nameless_file_there": lambda: write(home, os.O_TMPFILE | os.O_WRONLY),
    "a_file_there": lambda: os.close(os.open(f"{home}/new", os.O_CREAT | os.O_WRONLY)),
    "a_folder_there": lambda: os.mkdir(f"{home}/new"),
    "a_link_there": lambda: os.symlink("/etc", f"{home}/new"),
    "a_pipe_there": lambda: os.mkfifo(f"{home}/new"),
    "a_device_here": lambda: os.mknod(f"{work}/null", 0o20666, os.makedev(1, 3)),
    "mapped_and_written": mapped_and_written,
    "reopened_for_writing": lambda: write(f"/proc/self/fd/{os.open(kept, os.O_RDONLY)}"),
    "made_writable_by_its_flags": made_writable_by_its_flags,
    "lent_space": lambda: os.posix_fallocate(os.open(kept, os.O_WRONLY), 0, 1 << 16),
}


def what_came_of(way):
    try:
        got = WAYS[way]()
    except OSError as refusal:
        return errno.errorcode.get(refusal.errno, str(refusal))
    return "got it" if got and b"the secret" in got else "done"


def say(told):
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


others, tries = sys.argv[1:]
for each in json.loads(tries):
    home, work, ways = each
    secret, kept = f"{home}/.ssh/id", f"{home}/notes"
    if os.fork() == 0:
        say({way: what_came_of(way) for way in ways or WAYS})
        os._exit(0)
    os.wait()
