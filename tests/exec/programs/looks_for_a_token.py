import os
import subprocess
import sys

token = sys.argv[1][::-1]
assert token not in str(os.environ)
done = subprocess.run(["gh", "a b", "c"], capture_output=True, text=True)
print(done.stdout, end="")
found = 0
for line in open("/proc/self/maps"):
    span, mode = line.split()[:2]
    if "r" in mode and "vvar" not in line and "vsyscall" not in line:
        start, end = (int(word, 16) for word in span.split("-"))
        with open("/proc/self/mem", "rb", 0) as memory:
            memory.seek(start)
            parts = memory.read(end - start).split(b"GITHUB_TOKEN=")
            found += sum(part.startswith(b"t") for part in parts[1:])
print("in memory", found, "exit", done.returncode)
