import os
import subprocess as s

tool = s.Popen(["./tool"], stdin=s.PIPE, stdout=s.PIPE, stderr=s.PIPE)
print(tool.stderr.readline())
os.write(tool.stdin.fileno(), b"also free\n")
print(tool.stderr.readline(), len(tool.stdout.read()))
