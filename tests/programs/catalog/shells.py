"""What scripts are made of."""

from __future__ import annotations

from tests.programs.program import AWAIT, PIDS_OF_BASH, Do, Program, See, Send, Shot, Type

PROGRAMS = [
    Program(
        name="timeout",
        steps=(
            "timeout 0.1 sleep 60; echo $?",
            "timeout -s INT 0.1 bash -c 'trap \"exit 3\" INT; sleep 60 & wait'; echo $?",
            "timeout -k 0.1 0.1 bash -c 'trap \"\" TERM; sleep 60; sleep 60'; echo $?",
            "timeout --foreground 0.1 sleep 60; echo $?",
        ),
        normalize=(PIDS_OF_BASH,),
        quick=True,
    ),
    Program(
        name="nohup and setsid",
        steps=(
            "nohup sh -c 'kill -HUP $$; echo survived'",
            "setsid -w sh -c 'ps -o sid= -p $$ | tr -d \" \" | grep -qx $$ && echo leads'",
            f"{AWAIT} nohup sh -c '>up; exec sleep 60' >/dev/null 2>&1 & await test -e up;"
            " kill -HUP $!; kill -0 $! && kill $!; wait $!; echo $?",
            f"{AWAIT} (await test -e b; >c) & setsid -f sh -c 'echo started >a; exec sleep 60'",
            f"{AWAIT} await test -s a; >b; await test -e c; cat a",
        ),
        normalize=(PIDS_OF_BASH,),
        quick=True,
    ),
    Program(
        name="xargs -P",
        steps=(
            "seq 60 | xargs -P 8 -n 3 sh -c 'echo \"$@\"' sh | sort",
            "seq 6 | xargs -P 3 -n 1 sh -c 'exit $(($1 % 2))' sh; echo $?",
            "seq 3 | xargs -n 1 sh -c 'exit 255' sh; echo $?",
        ),
        quick=True,
    ),
    Program(
        name="bash in scripts",
        steps=(
            "set -o pipefail; yes | head -n 1; echo ${PIPESTATUS[@]}",
            "sh -c 'kill -9 $$'; echo $?; sh -c 'kill -SEGV $$'; echo $?",
            "trap 'echo bye' EXIT; trap 'echo caught' USR1; kill -USR1 $$; (exit 3); echo $?",
            "sleep 60 & kill $!; wait $!; echo $?",
            "for i in 1 2 3; do (exit $i) & done; for i in 1 2 3; do wait -n; done; jobs; echo ok",
            "diff <(echo a) <(echo b); coproc cat; echo hi >&${COPROC[1]}; read -u ${COPROC[0]} x;"
            " echo $x; kill $COPROC_PID; wait $COPROC_PID; echo $?",
            "mkfifo p; echo through >p & cat p; wait; rm p",
            "exec 9>lock; flock 9; (flock -n 9 && echo mine); flock -n lock true || echo taken",
            "read -t 0.1 x </dev/zero; echo $((${?} > 128)); ulimit -n 64; ulimit -n",
            f"{AWAIT} (sleep 60 & echo $! >pid); kill -STOP $(cat pid); kill -CONT $(cat pid);"
            " kill $(cat pid); await gone $(cat pid); rm pid",
            "(set -m; sleep 60 | sleep 60 & p=$!; kill -STOP -$p; kill -CONT -$p; kill -- -$p;"
            " wait $p) 2>/dev/null; echo $?",
            "env -i sh -c 'env | sort | grep -v -e ^_ -e ^PWD'",
        ),
        normalize=(PIDS_OF_BASH, (r"^SIGWRAP_SESSION=.*\n", "")),
        quick=True,
    ),
    Program(
        name="a server of an earlier shell",
        steps=(
            f"{AWAIT} python3 -c 'import signal; print(1, flush=True); signal.pause()' >log 2>&1 &"
            " echo $! >pid; await test -s log",
            "kill -0 $(cat pid) && echo runs",
            f"{AWAIT} kill $(cat pid); await gone $(cat pid); kill -0 $(cat pid) 2>&1 | wc -l",
            "rm pid",
        ),
        needs=("python3",),
        quick=True,
    ),
    Program(
        name="job control in bash -i",
        line=("bash", "--norc", "--noprofile", "-i"),
        terminal=True,
        acts=(
            See(r"[$#]\s*$"),
            Type("PS1='> '; clear\r"),
            See(r"^>$"),
            Type("sleep 61 & sleep 62 &\r"),
            See(r"\[2\] \d+\s+>$"),
            Type("clear; jobs\r"),
            See(r"\[2\]\+ .*sleep 62 &\s+>$"),
            Shot(),
            Type("fg %1\r"),
            See(r"> fg %1\s+sleep 61$"),
            # A key that comes before fg has continued the job would be undone by that.
            Do(
                "timeout 10 sh -c 'until p=$(ps -o ppid= -p $(pgrep -nf ^sleep.61$)) &&"
                " ps -o wchan= -p $p | grep -q wait; do :; done'"
            ),
            Type("\x1a"),
            See(r"Stopped +sleep 61\s+>$"),
            Type("bg %1\r"),
            See(r"sleep 61 &\s+>$"),
            Type("kill %1 %2; wait; clear\r"),
            See(r"^>$"),
            Type("(echo reads; exec cat)\r"),
            See(r"^reads$"),
            Type("\x03"),
            See(r"\^C\s+>$"),
            Type("clear; echo status $?\r"),
            See(r"^status \d+$\s+>$"),
            Shot(),
            Type("sh -c 'kill -STOP $$; echo again'\r"),
            See(r"Stopped.*\s+>$"),
            Type("fg\r"),
            See(r"^again$\s+>$"),
            Type("exit 7\r"),
        ),
        normalize=((r"\[(\d)\] \d+", r"[\1] PID"),),
        quick=True,
    ),
    Program(
        name="a script as cron runs it",
        before=(
            "mkdir -p etc/cron.hourly; cd etc/cron.hourly;"
            " printf '#!/bin/sh\\necho one $(id -u) $PATH\\n' >one;"
            " printf '#!/bin/sh\\necho two >&2; exit 3\\n' >two; chmod +x *"
        ),
        needs=("run-parts", "flock"),
        line=(
            *("env", "-i", "HOME=$HOME", "SHELL=/bin/sh", "PATH=/usr/bin:/bin", "/bin/sh", "-c"),
            "flock -n lock run-parts --report etc/cron.hourly; echo ended with $?",
        ),
        quick=True,
    ),
    Program(
        name="a shell script, interrupted",
        line=("sh", "-c", "trap 'echo caught; exit 5' INT; echo ready; sleep 60 & wait"),
        acts=(See("ready"), Send("INT")),
        interrupted=True,
        quick=True,
    ),
    Program(
        name="perl",
        needs=("perl",),
        steps=(
            "perl -e 'print `echo one`; system(\"exit 3\"); print $? >> 8, qq(\\n);'",
            "perl -e '$SIG{ALRM} = sub { print qq(alarm\\n); exit 4 }; alarm 1; sleep 60'; echo $?",
            "perl -e '$p = fork; sleep 60 if !$p; kill TERM => $p; waitpid $p, 0; print $? & 127'",
            "perl -e '$SIG{USR1} = sub { print qq(got\\n) }; kill USR1 => $$; print kill 0 => $$'",
            "perl -e 'setpgrp; $SIG{TERM} = sub { print qq(all\\n) }; kill -15, $$; print 1'",
            "perl -e 'open(P, \"echo piped; exit 2|\"); print <P>; close P; print $? >> 8'",
            "perl -e 'exec qw(no-such-program) or print \"$!\\n\"'",
        ),
        quick=True,
    ),
    Program(
        name="sudo",
        needs=("sudo",),
        steps=("sudo -n true 2>&1 | head -n 1; echo ${PIPESTATUS[0]}",),
        differs={
            "* ordinary": "setuid programs gain no rights under no_new_privs",
        },
        quick=True,
    ),
]
