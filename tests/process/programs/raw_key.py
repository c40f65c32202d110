import os
import tty

tty.setraw(0)
os.write(1, b"ready")
byte = os.read(0, 1)
os.write(1, b"got %d" % byte[0])
