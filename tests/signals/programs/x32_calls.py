from family import arrived, family
from inside import named, native, tell


def attack(pids):
    x32 = 0x40000000
    results = [
        named(native(x32 | number, pids["sibling"], 9)) for number in (62, 200, 129, 520, 512 + 12)
    ]
    results.append(named(native(x32 | 234, pids["sibling"], pids["sibling"], 9)))
    tell([results, arrived()])


family(attack)
