"""Children of every kind, each of which says that it is there; all ignore what they can. Then it
leaves at a byte, stays, stays and is deaf to those that ask it to end, or stays leaderless, by a
thread that isn't its first."""

import ctypes
import os
import select
import signal
import sys
import threading


def stay(name):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.write(1, b"here %s\n" % name)
    while True:
        signal.pause()


def child(name, *steps):
    if os.fork() == 0:
        for step in steps:
            step()
        stay(name)


def again():
    if os.fork():
        os._exit(0)


def bare():
    os.environ.clear()
    os.execve("/bin/sh", ["sh", "-c", "trap '' TERM INT HUP; echo here bare; read x <&9"], {})


def zombie():
    if os.fork() == 0:
        os._exit(0)


def stopped():
    os.write(1, b"here stopped\n")
    os.kill(os.getpid(), signal.SIGSTOP)


r, w = os.pipe()
os.dup2(r, 9)
child(b"child")
child(b"setsid", os.setsid)
child(b"daemon", again, os.setsid, again)
child(b"group", lambda: os.setpgid(0, 0))
child(b"deep", *[again] * 5)
child(b"with zombie", zombie)
child(b"bare", bare)
child(b"x", stopped)
match sys.argv[1]:
    case "leaves":
        os.read(0, 1)
        os._exit(7)
    case "deaf":
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    case "leaderless":
        threading.Thread(target=select.select, args=([], [], [])).start()
        ctypes.CDLL(None).syscall(60, 0)
select.select([], [], [])
