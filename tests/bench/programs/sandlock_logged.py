"""Runs a command under sandlock, with handlers that decide about each exec and each signal and
write it down: sandlock_logged.py LOG COMMAND…"""

import json
import os
import sys
import time

from sandlock import Handler, NotifAction, Sandbox

EACCES = 13
DENIED = {"/sbin/reboot", "/usr/sbin/reboot"}

log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)


def write_down(kind, ctx, **facts):
    event = {"time_ns": time.time_ns(), "type": kind, "pid": ctx.pid, **facts}
    os.write(log, json.dumps(event).encode() + b"\n")


class OnExec(Handler):
    def handle(self, ctx):
        path = ctx.read_path()
        if path is None or path in DENIED:
            write_down("exec_denied", ctx, path=path)
            return NotifAction.errno(EACCES)
        write_down("exec_allowed", ctx, path=path)
        return NotifAction.continue_()


class OnSignal(Handler):
    def handle(self, ctx):
        write_down("signal_sent", ctx, arguments=ctx.args[:3])
        return NotifAction.continue_()


execs, signals = OnExec(), OnSignal()
done = Sandbox(fs_readable=["/"], fs_writable=["/tmp", "/dev", os.getcwd()]).run_with_handlers(
    sys.argv[2:],
    [("execve", execs), ("execveat", execs)]
    + [(name, signals) for name in ("kill", "tkill", "tgkill")],
)
sys.stdout.buffer.write(done.stdout or b"")
sys.stderr.buffer.write(done.stderr or b"")
sys.exit(done.exit_code)
