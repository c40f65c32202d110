import json
import os

from inside import block_all, drain, line_of, named, native, spawn, tell

block_all()
os.setpgid(0, 0)
asked, answer = os.pipe(), os.pipe()


def child():
    os.read(asked[0], 1)
    os.write(answer[1], json.dumps(drain()).encode() + b"\n")


spawn(child)
result = named(native(62, 0, 34))
os.write(asked[1], b"x")
tell([result, drain(), json.loads(line_of(answer[0])), os.getpid()])
