"""Whose environment it may read, and in which of them the value is. It comes backwards: it is not
to be here."""

import json
import os
import sys

value = sys.argv[1][::-1].encode()
read, found = [], []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        with open(f"/proc/{pid}/comm", errors="backslashreplace") as file:
            comm = file.read().strip()
        with open(f"/proc/{pid}/environ", "rb") as file:
            text = file.read()
    except OSError:
        continue
    if text:
        read.append(comm)
    if value in text:
        found.append([int(pid), comm])
print(json.dumps({"read": read, "found": found}))
