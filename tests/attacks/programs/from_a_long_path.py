"""from_a_long_path.py COMMAND...: says what comes of each where a path is longer than the kernel
tells. In a command, `@/` is the root folder by relative words."""

import errno
import os
import shutil
import subprocess
import sys

for _ in range(30):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
os.makedirs("build/x")
shutil.copy("/bin/echo", "evil")
os.symlink("evil", "ls")
levels = 30 + len(os.environ["PWD"].split("/"))
for command in sys.argv[1:]:
    words = command.replace("@/", "../" * levels).split(" ")
    try:
        done = subprocess.run(words, check=False)
        print(done.returncode, flush=True)
    except OSError as failure:
        print(errno.errorcode[failure.errno], flush=True)
