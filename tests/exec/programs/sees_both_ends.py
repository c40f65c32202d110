import subprocess as s

tool = s.Popen(["./tool"], stdin=s.PIPE, stdout=s.PIPE)
end = tool.stdout.read()
try:
    while True:
        tool.stdin.write(bytes(1 << 16))
except BrokenPipeError:
    print(end, tool.poll())
    tool.terminate()
    print(tool.wait())
