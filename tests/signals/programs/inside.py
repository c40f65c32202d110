"""What tests run inside a session, by `python -c`: raw calls by each ABI, and receivers."""

import ctypes
import errno
import json
import mmap
import os
import signal
import struct

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.mmap.restype = ctypes.c_void_p

NATIVE = {
    "kill": 62,
    "tkill": 200,
    "tgkill": 234,
    "rt_sigqueueinfo": 129,
    "rt_tgsigqueueinfo": 297,
    "pidfd_send_signal": 424,
}
I386 = {
    "kill": 37,
    "tkill": 238,
    "tgkill": 270,
    "rt_sigqueueinfo": 178,
    "rt_tgsigqueueinfo": 335,
    "pidfd_send_signal": 424,
}
IS_AARCH64 = os.uname().machine == "aarch64"
# By what x86_64 calls them; from 424 on they are the same.
OF_AARCH64 = {16: 29, 56: 220, 62: 129, 72: 25, 101: 117, 109: 154, 126: 91, 129: 138, 141: 140}
OF_AARCH64 |= {142: 118, 144: 119, 153: 58, 165: 40, 169: 142, 200: 130, 203: 122, 222: 107}
OF_AARCH64 |= {223: 110, 234: 131, 246: 104, 250: 219, 251: 30, 256: 238, 272: 97, 279: 239}
OF_AARCH64 |= {297: 240, 298: 241, 300: 262, 302: 261, 310: 270, 311: 271, 314: 274, 320: 294}
OF_AARCH64 |= {321: 280, 323: 282}
EVERY_SIGNAL = signal.valid_signals()


def parent_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def native(number, *words):
    """0 or more, or minus the errno. `number` is x86_64's."""
    if IS_AARCH64 and number < 424:
        number = OF_AARCH64[number]
    words = [ctypes.c_long(w) if isinstance(w, int) else w for w in words]
    result = libc.syscall(ctypes.c_long(number), *words)
    return result if result >= 0 else -ctypes.get_errno()


# push rbx; the six words to eax, ebx, ecx, edx, esi, edi; int 0x80; pop rbx; cdqe; ret
_INT80 = bytes.fromhex("53 4889f8 4889f3 4989ca 4889d1 4c89d2 4c89c6 4c89cf cd80 5b 4898 c3")
_page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
_page.write(_INT80)
_at = ctypes.addressof(ctypes.c_char.from_buffer(_page))
_int80 = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_long] * 6)(_at)


def i386(number, *words):
    """The same by `int 0x80`; pointers must lie below 4 GB."""
    if IS_AARCH64:
        return -errno.ENOSYS
    words = [*words, 0, 0, 0, 0, 0][:5]
    return _int80(number, *words)


def has_i386():
    return i386(20) == os.getpid()  # getpid


_low = libc.mmap(None, ctypes.c_size_t(4096), 3, 0x62, -1, ctypes.c_long(0))  # MAP_32BIT


def low(data):
    """`data` where an i386 pointer reaches it."""
    ctypes.memmove(_low, data, len(data))
    return _low


def siginfo(number, abi="native", code=-1, value=77):
    head = struct.pack("<iii", number, 0, code)
    pad = b"\0" * 4 if abi == "native" else b""
    return (head + pad + struct.pack("<iIq", os.getpid(), os.getuid(), value)).ljust(128, b"\0")


def send(syscall, abi, pid, number, *, tgid=None, pidfd=-1):
    """One signal by one call; `pid` may be a thread's of `tgid`."""
    info = low(siginfo(number, abi))
    words = {
        "kill": (pid, number),
        "tkill": (pid, number),
        "tgkill": (tgid or pid, pid, number),
        "rt_sigqueueinfo": (pid, number, info),
        "rt_tgsigqueueinfo": (tgid or pid, pid, number, info),
        "pidfd_send_signal": (pidfd, number, 0, 0),
    }[syscall]
    return native(NATIVE[syscall], *words) if abi == "native" else i386(I386[syscall], *words)


# Receivers: everything is blocked, so what has been sent is pending when the sender's call returns.


def block_all():
    signal.pthread_sigmask(signal.SIG_BLOCK, EVERY_SIGNAL)


def drain():
    """What is pending for the calling thread and its process."""
    found = []
    while (info := signal.sigtimedwait(EVERY_SIGNAL, 0)) is not None:
        if info.si_signo != signal.SIGCHLD:
            found.append({"signal": info.si_signo, "code": info.si_code, "pid": info.si_pid})
    return found


def box(boxes, name):
    ends = []
    for side in ("in", "out"):
        path = f"{boxes}/{name}.{side}"
        try:
            os.mkfifo(path)
            os.chmod(path, 0o666)
        except FileExistsError:
            pass  # the other end was first
        ends.append(os.open(path, os.O_RDWR))
    return ends


def receive(boxes, name):
    block_all()
    asked, answers = box(boxes, name)
    while os.read(asked, 1) == b"d":
        os.write(answers, json.dumps([os.getpid(), drain()]).encode() + b"\n")


def ask(boxes, name):
    """A receiver's pid, and what has reached it."""
    asked, said = box(boxes, name)
    os.write(asked, b"d")
    answer = json.loads(line_of(said))
    os.close(asked)
    os.close(said)
    return answer


def dismiss(boxes, name):
    os.write(box(boxes, name)[0], b"q")


def line_of(fd):
    data = b""
    while not data.endswith(b"\n"):
        data += os.read(fd, 1 << 16)
    return data


def spawn(run):
    """`run` in a child, which then ends."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            run()
            code = 0
        finally:
            os._exit(code)
    return pid


def named(number):
    """0 as 0, an error by its name."""
    return number if number >= 0 else errno.errorcode[-number]


def tell(value):
    os.write(1, json.dumps(value).encode() + b"\n")
