import errno
import os

for path in ("", "absent", "plain", "plain/x", ".", "loop", "a" * 300, "b" * 5000, "/proc/self/x"):
    try:
        os.execv(path or "/", ["x"]) if path else os.execve(path, ["x"], {})
    except OSError as error:
        print(path[:9], errno.errorcode[error.errno])
