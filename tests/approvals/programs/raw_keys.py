import os
import tty

tty.setraw(0)
print("raw", flush=True, end="")
while True:
    print("KEY", os.read(0, 1), flush=True, end="")
