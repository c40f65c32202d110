"""What a kernel of that version hasn't is refused as it would be: older_kernel.py 5.6 PROGRAM …"""

import ctypes
import errno
import os
import struct
import sys

version = tuple(map(int, sys.argv[1].split(".")))

# The numbers that it hasn't of those up to 452; those above are newer still.
MISSING = {"5.5": range(436, 453), "5.6": (436, *range(439, 453)), "6.1": (451, 452)}
LOAD, EQUAL, AT_LEAST, BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06

# By call: which of its arguments, a bit or a whole number of it by the version that brought it, and
# how it is refused before: flags of seccomp(2), requests to its listener, pwritev2's RWF_NOWAIT
# (which it had for files, but not for pipes).
SECCOMP, IOCTL, PWRITEV2 = 317, 16, 328
WORDS = (
    (SECCOMP, 1, BITS, {(5, 0): 8, (5, 19): 32}, errno.EINVAL),
    (IOCTL, 1, EQUAL, {(5, 9): 0x40182103, (6, 6): 0x40082104}, errno.EINVAL),
    (PWRITEV2, 5, BITS, {(6, 4): 8}, errno.EOPNOTSUPP),
)
ALLOW, REFUSE = 0x7FFF0000, 0x00050000


def step(code, yes, no, operand):
    return struct.pack("<HBBI", code, yes, no, operand)


def refused(error):
    return step(RETURN, 0, 0, REFUSE | error)


steps = [step(LOAD, 0, 0, 0)]
for number in MISSING[sys.argv[1]]:
    steps += [step(EQUAL, 0, 1, number), refused(errno.ENOSYS)]
steps += [step(AT_LEAST, 0, 1, 453), refused(errno.ENOSYS)]
for call, argument, test, by_version, error in WORDS:
    words = [word for since, word in by_version.items() if since > version]
    body = [step(LOAD, 0, 0, 16 + 8 * argument)]
    for word in words:
        body += [step(test, 0, 1, word), refused(error)]
    steps += [step(EQUAL, 0, len(body) + 1, call), *body, step(RETURN, 0, 0, ALLOW)]
steps.append(step(RETURN, 0, 0, ALLOW))

code = ctypes.create_string_buffer(b"".join(steps))
program = struct.pack("<HxxxxxxQ", len(steps), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) == 0, ctypes.get_errno()
os.execv(sys.argv[2], sys.argv[2:])
