"""A FUSE file system whose files answer late or never: `fuse_server.py FOLDER FILE` mounts it on
FOLDER, says "ready", and serves FILE under these names. Of each request that gets no answer it says
"waits NAME".

    prompt         answers everything
    never-found    a lookup gets no answer
    never-told     its attributes are not told, once it was looked up
    never-opened   an open gets no answer
    never-read     a read gets no answer
    never-flushed  a close by the supervisor gets no answer
    two-faced      to whoever opens it first it shows FILE, to the others FILE's first line alone
"""

import ctypes
import os
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH = 1, 2, 3, 14, 15, 17, 18, 25
INIT = 26
OPENDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET = 27, 29, 36, 42
WHAT = ["found", "told", "opened", "read", "flushed"]
NAMES = ["prompt", *(f"never-{what}" for what in WHAT), "two-faced"]
NO_SUCH_FILE, NO_SUCH_CALL = -2, -38
LONG_S = 10_000
ROOT = 1

folder, served = sys.argv[1:]
with open(served, "rb") as file:
    content = file.read()
device = os.open(os.environ.get("FUSE", "/dev/fuse"), os.O_RDWR)
options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"test", folder.encode(), b"fuse", 0, options.encode()) != 0:
    sys.exit(f"can't mount: {os.strerror(ctypes.get_errno())}")
openers: dict[int, int] = {}  # of two-faced, by the number of the open


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def attributes(node):
    mode = 0o40755 if node == ROOT else 0o100755
    size = 0 if node == ROOT else len(content)
    return struct.pack("<6Q10I", node, size, 0, 1, 1, 1, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def name_of(node):
    return NAMES[node - ROOT - 1] if node > ROOT else "/"


def answer(unique, error=0, data=b""):
    try:
        os.write(device, struct.pack("<IiQ", 16 + len(data), error, unique) + data)
    except OSError:
        pass  # whoever asked is gone


def look_up(unique, _node, body):
    name = body.split(b"\0")[0].decode()
    if name not in NAMES:
        answer(unique, NO_SUCH_FILE)
    elif name == "never-found":
        say(f"waits {name}")
    else:
        node = ROOT + 1 + NAMES.index(name)
        told_s = 0 if name == "never-told" else LONG_S
        entry = struct.pack("<4Q2I", node, 0, LONG_S, told_s, 0, 0)
        answer(unique, 0, entry + attributes(node))


def get_attributes(unique, node, _body):
    if name_of(node) == "never-told":
        say("waits never-told")
    else:
        answer(unique, 0, struct.pack("<QII", LONG_S, 0, 0) + attributes(node))


def open_it(unique, node, _body):
    if name_of(node) == "never-opened":
        say("waits never-opened")
        return
    number = len(openers)
    openers[number] = node
    answer(unique, 0, struct.pack("<QIi", number, 0, 0))


def read_it(unique, node, body):
    number, offset, size = struct.unpack_from("<QQI", body)
    shown = content
    if name_of(node) == "never-read":
        say("waits never-read")
        return
    if name_of(node) == "two-faced":
        first = min(each for each, opened in openers.items() if opened == node)
        if number != first:
            shown = content.splitlines(keepends=True)[0].ljust(len(content), b"\n")
    answer(unique, 0, shown[offset : offset + size])


def flush(unique, node, pid):
    with open(f"/proc/{pid}/comm", encoding="ascii") as name:
        is_supervisors = name.read().startswith("sigwrap-super")
    if name_of(node) == "never-flushed" and is_supervisors:
        say("waits never-flushed")
    else:
        answer(unique)


def start(unique, _node, body):
    _major, minor, readahead, _flags = struct.unpack_from("<4I", body)
    out = struct.pack("<4I2HIIHHI28x", 7, min(minor, 31), readahead, 0, 8, 8, 65536, 1, 0, 0, 0)
    answer(unique, 0, out)
    say("ready")


answers = {
    LOOKUP: look_up,
    GETATTR: get_attributes,
    OPEN: open_it,
    OPENDIR: open_it,
    READ: read_it,
    INIT: start,
}
while True:
    try:
        request = os.read(device, 1 << 18)
    except FileNotFoundError:  # whoever asked is gone
        continue
    except OSError:  # unmounted
        break
    _length, opcode, unique, node, _uid, _gid, pid = struct.unpack_from("<IIQQIII", request)
    if opcode in answers:
        answers[opcode](unique, node, request[40:])
    elif opcode == FLUSH:
        flush(unique, node, pid)
    elif opcode == STATFS:
        answer(unique, 0, bytes(80))
    elif opcode in (RELEASE, RELEASEDIR):
        answer(unique)
    elif opcode not in (FORGET, BATCH_FORGET, INTERRUPT):
        answer(unique, NO_SUCH_CALL)
