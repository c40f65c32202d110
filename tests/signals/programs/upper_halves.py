import os
import socket
import struct

from family import arrived, family
from inside import named, native, tell


def attack(pids):
    victim, garbage = pids["sibling"], 0x7EADBEEF << 32
    a, _ = os.pipe()
    one, _ = socket.socketpair()
    here = struct.pack("i", victim)
    results = [
        named(result)
        for result in (
            native(62, garbage | victim, garbage | 9),
            native(62, victim, garbage | 9),
            native(62, garbage | (-victim & 0xFFFFFFFF), 9),
            native(234, garbage | victim, garbage | victim, garbage | 9),
            native(424, garbage | os.pidfd_open(victim), garbage | 9, 0, garbage),
            native(72, garbage | a, garbage | 8, garbage | victim),
            native(16, garbage | one.fileno(), garbage | 0x8901, here),
            native(101, 16, garbage | victim, 0, 0),
            native(101, 0x4206, garbage | victim, 0, 0),
            native(62, garbage | victim, garbage),
            native(72, garbage | a, garbage | 10, garbage | 9),
        )
    ]
    tell([results, arrived()])


family(attack)
