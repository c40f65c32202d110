import os
import sys

children = []
for number in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        os.execv("/bin/ls", ["ls", str(number)])
    children.append(child)
print(sum(os.waitpid(child, 0)[1] == 0 for child in children), flush=True)
