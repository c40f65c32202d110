"""Puts an empty file in the place of each that has a name for a moment: `swaps_new_files.py FOLDER`
says "ready", and does it until its standard input ends."""

import ctypes
import os
import select
import struct
import sys

CREATED = 0x100
HEAD = struct.Struct("<iIII")

folder = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
events = libc.inotify_init1(os.O_CLOEXEC)
if libc.inotify_add_watch(events, folder.encode(), CREATED) < 0:
    sys.exit("can't watch")
evil = os.path.join(folder, "evil")
os.close(os.open(evil, os.O_CREAT))
sys.stdout.write("ready\n")
sys.stdout.flush()
while 0 not in select.select([events, 0], [], [])[0]:
    data, at = os.read(events, 1 << 16), 0
    while at < len(data):
        _, _, _, length = HEAD.unpack_from(data, at)
        name = data[at + HEAD.size : at + HEAD.size + length].rstrip(b"\0").decode()
        at += HEAD.size + length
        if ".new-" in name:
            os.rename(evil, os.path.join(folder, name))
            os.close(os.open(evil, os.O_CREAT))
