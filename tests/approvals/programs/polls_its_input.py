import os
import select
import sys


def by_select():
    select.select([0], [], [])


def by_epoll():
    waiting = select.epoll()
    waiting.register(0, select.EPOLLIN)
    waiting.poll()


wait = {"select": by_select, "epoll": by_epoll}[sys.argv[1]]
print("polls", flush=True)
while True:
    wait()
    print("GOT", os.read(0, 100), flush=True)
