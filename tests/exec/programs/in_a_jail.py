import os
import sys

os.chroot(sys.argv[1])
os.chdir("/")
for path in ("/bin/bad", "bin/../../bin/link", "/bin/sh"):
    try:
        os.execv(path, ["x"])
    except OSError as error:
        print(error.errno, flush=True)
