import os
import select
import signal
import tty

resized, tell = os.pipe()
os.set_blocking(tell, False)
signal.set_wakeup_fd(tell)
signal.signal(signal.SIGWINCH, lambda *_: None)
tty.setraw(0)
while True:
    columns, rows = os.get_terminal_size()
    os.write(1, f"size-{rows}x{columns}.".encode())
    if 0 in select.select([0, resized], [], [])[0]:
        key = os.read(0, 1)
        os.write(1, b"key-%d." % ord(key))
        if key == b"q":
            break
    else:
        os.read(resized, 1)
