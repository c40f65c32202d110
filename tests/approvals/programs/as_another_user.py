import os
import socket
import sys

user = int(sys.argv[2])
os.setresuid(user, user, user)
end = socket.socket(socket.AF_UNIX)
end.connect(sys.argv[1])
print(end.makefile().readline(), end="")
