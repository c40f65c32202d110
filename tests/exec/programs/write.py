import sys

for _ in range(int(sys.argv[1])):
    sys.stdout.buffer.write(bytes(range(256)) * 4096)
