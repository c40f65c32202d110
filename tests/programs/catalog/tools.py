"""Tools that hold processes, keys and traces."""

from __future__ import annotations

from tests.programs.program import AWAIT, Program, User

_TRACED = """\
cat >a.c <<'EOF'
#include <stdio.h>
static int twice(int n) { return 2 * n; }
int main(void) { int m = twice(4); printf("%d\\n", m); return m; }
EOF
cc -g -O0 -o a a.c
"""

_MANY = """
import subprocess
started = [subprocess.Popen(["sleep", "100"]) for _ in range(2000)]
print(sum(process.poll() is None for process in started), "run")
for process in started: process.terminate()
print({process.wait() for process in started})
"""

_GDB = "gdb -nx -q -batch -iex 'set debuginfod enabled off'"
_CHROMIUM = (
    "chromium --headless --disable-gpu --disable-dev-shm-usage --user-data-dir=$HOME/c 2>err"
)

PROGRAMS = [
    Program(
        name="gdb",
        needs=("gdb", "cc"),
        before=_TRACED,
        steps=(
            f"{_GDB} -ex 'break twice' -ex run -ex bt -ex 'print n' -ex finish -ex cont ./a",
            f"{_GDB} -ex 'set follow-fork-mode child' -ex run"
            " --args /bin/sh -c '/bin/true; exit 3' 2>&1 | grep -o 'exited .*'",
            f"{_GDB} -ex 'break main' -ex run -ex 'print twice(8)' -ex kill ./a 2>&1 | tail -n 2",
            f"sleep 60 & {_GDB} -p $! -ex 'info proc' -ex detach >/dev/null 2>&1; echo $?;"
            " kill $!; wait $!; echo $?",
        ),
        normalize=((r"process \d+", "process PID"), (r"0x[0-9a-f]+", "ADDRESS")),
    ),
    Program(
        name="strace -f",
        needs=("strace",),
        steps=(
            "strace -f -o out -e trace=execve -e signal=none sh -c '/bin/true; /bin/echo x'",
            "sed -e 's/^[0-9]* *//' -e 's/, 0x.*vars.*)/)/' -e 's/attached.*//' out; rm out",
            "strace -f -qq -e trace=kill -e signal=none sh -c 'kill -TERM $$' 2>&1 |"
            " sed -e 's/^.pid *[0-9]*. *//' -e 's/[0-9]\\{2,\\}/PID/'; echo ${PIPESTATUS[0]}",
            "sleep 60 & strace -p $! -o out 2>err & while ! [ -s err ]; do sleep 0.02; done;"
            " kill %1; wait %2; tail -n 1 out; rm out err",
        ),
        quick=True,
    ),
    Program(
        name="script",
        needs=("script",),
        steps=(
            "script -qec 'stty -echo; test -t 0 && echo terminal; exit 4' out; echo $?",
            "tr -d '\\r' <out | grep -v ^Script; rm out",
            "script -qec 'kill -TERM $$' /dev/null; echo $?",
        ),
        quick=True,
    ),
    Program(
        name="gpg",
        needs=("gpg", "gpg-agent", "gpgconf"),
        steps=(
            "gpg -q --batch --passphrase '' --quick-gen-key a@example.org ed25519 sign never 2>&1 |"
            " sed 's/[0-9A-F]\\{16,\\}.*/KEY/'",
            "echo text >a; gpg -q --batch -s a; gpg -q -d a.gpg 2>/dev/null",
            "gpg -q --batch --detach-sign a; gpg --verify a.sig 2>&1 | grep -c Good",
            "gpg -q --batch --passphrase x -c -o b a; gpg -q --batch --passphrase x"
            " --pinentry-mode loopback -d b",
            f"{AWAIT} gpgconf --kill gpg-agent; echo $?;  await test ! -e $HOME/.gnupg/S.gpg-agent",
        ),
        ignore_files=r"gpg$|sig$|^b$",
    ),
    Program(
        name="ssh-agent",
        needs=("ssh-agent", "ssh-add", "ssh-keygen"),
        steps=(
            "ssh-agent -a $PWD/s >env; ssh-keygen -q -t ed25519 -N '' -C a -f key; echo made",
            ". ./env >/dev/null; ssh-add -q key; ssh-add -l | cut -d ' ' -f 1,3,4",
            ". ./env >/dev/null; ssh-add -T key.pub; echo $?; ssh-add -D 2>&1; ssh-add -l",
            f"{AWAIT} . ./env >/dev/null; ssh-agent -k | head -n 1; await test ! -e s; rm env key",
            "ssh-keygen -q -t ed25519 -N '' -C a -f b; ssh-agent sh -c 'ssh-add -q b; ssh-add -l |"
            " wc -l'; rm b*",
        ),
        normalize=((r"pid \d+", "pid"),),
        ignore_files="key.pub",
        differs={
            "* ordinary": "ssh-agent cannot be inspected, so sigwrap denies the programs that it "
            "starts",
        },
    ),
    Program(
        name="2,000 processes at once",
        needs=("python3",),
        line=("python3", "-I", "-S", "-c", _MANY),
        processes=2300,
        within_s=120,
    ),
    Program(
        name="Chromium headless in its own sandbox",
        needs=("chromium",),
        users=(User.ORDINARY,),
        before=(
            "echo '<p id=p>a</p><script>p.textContent = 6 * 7 + String(!!window.Worker)</script>'"
            " >a.html"
        ),
        steps=(
            f"{_CHROMIUM} --dump-dom file://$PWD/a.html; echo $?",
            f"{_CHROMIUM} --print-to-pdf=a.pdf file://$PWD/a.html; head -c 5 a.pdf; rm a.pdf err",
        ),
        within_s=120,
        processes=600,
    ),
]
