import os
import select

r, w = os.pipe()
told, tell = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.write(tell, b"%d" % os.getpid())
        os.read(r, 1)
    os._exit(0)
os.wait()
orphan = int(os.read(told, 10))
fd = os.pidfd_open(orphan)
os.write(w, b"x")
select.select([fd], [], [])
while os.path.exists(f"/proc/{orphan}"):
    select.select([], [], [], 0.001)
print("reaped")
