import subprocess
import sys

token = sys.argv[1][::-1].encode()
tool = subprocess.Popen(["./tool"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(tool.stdout.readline().decode(), end="", flush=True)
found = []
for pid in ("self", str(tool.pid)):
    assert token not in open(f"/proc/{pid}/environ", "rb").read()
    for line in open(f"/proc/{pid}/maps"):
        span, mode = line.split()[:2]
        if "r" in mode and "vvar" not in line and "vsyscall" not in line:
            start, end = (int(word, 16) for word in span.split("-"))
            with open(f"/proc/{pid}/mem", "rb", 0) as memory:
                memory.seek(start)
                parts = memory.read(end - start).split(b"TOKEN=")
                found += [pid for part in parts[1:] if part.startswith(token)]
print(found, "exit", (tool.stdin.close(), tool.wait())[1])
