"""Calls that the filter itself refuses, by both ABIs; root's, mostly."""

import os

from inside import has_i386, i386, low, named, native, tell

CALLS = {
    "keyctl, the parent's keyring": (250, 288, (18,)),
    "bpf, a link": (321, 357, (28, bytes(64), 64)),
    "bpf, a tracepoint": (321, 357, (17, bytes(64), 64)),
    "fanotify, that decides": (300, 338, (4, 0)),
    "fanotify, that decides first": (300, 338, (8, 0)),
    "userfaultfd": (323, 374, (0,)),
    "reboot": (169, 88, (0, 0, 0)),  # numbers that the kernel wouldn't take
    "kexec_load": (246, 283, (0, 99, 0, 0xFFFF)),
}
told = {}
for name, (number, old, words) in CALLS.items():
    results = [native(number, *words)]
    if has_i386():
        results.append(i386(old, *(low(w) if isinstance(w, bytes) else w for w in words)))
    told[name] = sorted({named(each) for each in results})
told["kexec_file_load"] = [named(native(320, -1, -1, 0, 0, 0xFFFF))]
told["free"] = [named(min(native(323, 1 | os.O_CLOEXEC), 0))]
tell(told)
