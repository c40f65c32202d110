import os
import shutil
import sys
import time

swap, folder, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
os.chdir(folder)


def put(name):
    if swap == "overwrite":
        try:
            with open(name, "rb") as source, open("program", "r+b") as program:
                program.write(source.read())
                program.truncate()
        except OSError:  # it is being executed
            pass
        return
    if swap == "symlink":
        os.symlink(name, "next")
    else:
        shutil.copy(name, "next")
    os.rename("next", "program")


shutil.copy("good", "program")
flipper = os.fork()
if flipper == 0:
    while True:
        for name in ("bad", "good"):
            put(name)
            for _ in range(hash(time.monotonic()) % 2000):
                pass
start = time.monotonic()
count = {"ran": 0, "denied": 0, "failed": 0, "killed": 0}


def is_enough():
    passed = time.monotonic() - start
    return passed > 20 or (passed > seconds and count["denied"] and count["ran"])


while not is_enough():
    child = os.fork()
    if child == 0:
        try:
            os.execv("program", ["program", "x"])
        except PermissionError:
            os._exit(100)
        except OSError:
            os._exit(101)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    end = {0: "ran", 100: "denied", 101: "failed", -9: "killed"}[status]
    count[end] += 1
os.kill(flipper, 9)
print(*(f"{end} {number}" for end, number in count.items()), file=sys.stderr)
