"""Tries to read a secret, and to change what lies outside of a folder, by every way there is. Says
for each way, or for one of them, what came of it."""

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
home, work, others, *only = sys.argv[1:]
secret = f"{home}/.ssh/id"
kept = f"{home}/notes"
told = {}


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


def way(function):
    if function.__name__ not in (only or [function.__name__]):
        return function
    try:
        got = function()
    except OSError as refusal:
        told[function.__name__] = errno.errorcode.get(refusal.errno, str(refusal))
    else:
        told[function.__name__] = "got it" if got and b"the secret" in got else "done"
    return function


# Reading


@way
def by_its_name():
    return read(secret)


@way
def by_a_link_of_ours():
    os.symlink(secret, f"{work}/link")
    return read(f"{work}/link")


@way
def by_another_name():
    os.link(secret, f"{work}/hard")
    return read(f"{work}/hard")


@way
def moved_here():
    os.rename(secret, f"{work}/moved")
    return read(f"{work}/moved")


@way
def its_folder_moved_here():
    os.rename(f"{home}/.ssh", f"{work}/ssh")
    return read(f"{work}/ssh/id")


@way
def exchanged():
    os.mkdir(f"{work}/empty")
    call(316, -100, f"{home}/.ssh".encode(), -100, f"{work}/empty".encode(), 2)
    return read(f"{work}/empty/id")


@way
def from_its_folder():
    return read(os.open("id", os.O_RDONLY, dir_fd=os.open(f"{home}/.ssh", os.O_RDONLY)))


@way
def from_our_root():
    return read(f"/proc/self/root{secret}")


@way
def from_our_folder():
    os.chdir(f"{home}/.ssh")
    try:
        return read("/proc/self/cwd/id")
    finally:
        os.chdir(work)


@way
def through_a_path_descriptor():
    return read(f"/proc/self/fd/{os.open(secret, os.O_PATH)}")


@way
def by_a_handle():
    handle = (ctypes.c_uint32 * 40)(128)
    mount = ctypes.c_int()
    call(303, -100, secret.encode(), handle, ctypes.byref(mount), 0)
    return read(call(304, os.open(home, os.O_RDONLY), handle, os.O_RDONLY))


@way
def as_i386():
    return run(others, "i386", secret)


@way
def by_a_ring():
    return run(others, "uring", secret)


@way
def by_a_loaded_program():
    return run("/bin/sh", secret)


@way
def mounted_here():
    return run("unshare", "-Urm", "sh", "-c", f"mount --bind {home}/.ssh {work} && cat {work}/id")


@way
def by_chroot():
    return run("unshare", "-Ur", "chroot", f"{home}/.ssh", "/id")


@way
def by_an_overlay():
    options = f"lowerdir={home}/.ssh,upperdir={work}/u,workdir={work}/w"
    line = f"mkdir {work}/u {work}/w && mount -t overlay x -o {options} {work} && cat {work}/id"
    return run("unshare", "-Urm", "sh", "-c", line)


@way
def copied_by_the_kernel():
    with open(f"{work}/copy", "w+b") as copy:
        os.copy_file_range(os.open(secret, os.O_PATH), copy.fileno(), 100)
        return read(copy.name)


@way
def mapped():
    return bytes(mmap.mmap(os.open(secret, os.O_PATH), 0, prot=mmap.PROT_READ))


@way
def from_a_socket_there():
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{home}/.ssh/socket")


# Changing


@way
def written():
    os.write(os.open(kept, os.O_WRONLY), b"changed")


@way
def appended():
    os.write(os.open(kept, os.O_WRONLY | os.O_APPEND), b"changed")


@way
def emptied_when_opened():
    os.open(kept, os.O_RDONLY | os.O_TRUNC)


@way
def emptied():
    os.truncate(kept, 0)


@way
def emptied_by_a_descriptor():
    os.ftruncate(os.open(kept, os.O_RDONLY), 0)


@way
def deleted():
    os.unlink(kept)


@way
def replaced():
    with open(f"{work}/other", "w") as file:
        file.write("changed")
    os.rename(f"{work}/other", kept)


@way
def replaced_by_a_name():
    with open(f"{work}/other", "w") as file:
        file.write("changed")
    os.unlink(kept)
    os.link(f"{work}/other", kept)


@way
def linked_here_and_written():
    os.link(kept, f"{work}/notes")
    os.write(os.open(f"{work}/notes", os.O_WRONLY), b"changed")


@way
def written_through_a_link():
    os.symlink(kept, f"{work}/to-notes")
    os.write(os.open(f"{work}/to-notes", os.O_WRONLY), b"changed")


@way
def its_name_given_to_a_nameless_file():
    fd = os.open(work, os.O_TMPFILE | os.O_WRONLY, 0o600)
    call(265, -100, f"/proc/self/fd/{fd}".encode(), -100, f"{home}/new".encode(), 0x400)


@way
def a_nameless_file_there():
    os.open(home, os.O_TMPFILE | os.O_WRONLY, 0o600)


@way
def a_file_there():
    os.open(f"{home}/new", os.O_CREAT | os.O_WRONLY, 0o600)


@way
def a_folder_there():
    os.mkdir(f"{home}/new")


@way
def a_link_there():
    os.symlink("/etc", f"{home}/new")


@way
def a_pipe_there():
    os.mkfifo(f"{home}/new")


@way
def a_device_here():
    os.mknod(f"{work}/null", 0o20666, os.makedev(1, 3))


@way
def mapped_and_written():
    fd = os.open(kept, os.O_RDWR)
    mmap.mmap(fd, 0)[0:1] = b"X"


@way
def reopened_for_writing():
    fd = os.open(kept, os.O_RDONLY)
    os.write(os.open(f"/proc/self/fd/{fd}", os.O_WRONLY), b"changed")


@way
def made_writable_by_its_flags():
    fd = os.open(kept, os.O_RDONLY)
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_RDWR)
    os.write(fd, b"changed")


@way
def lent_space():
    os.posix_fallocate(os.open(kept, os.O_WRONLY), 0, 1 << 16)


json.dump(told, sys.stdout)
