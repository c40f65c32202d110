"""Servers: started and stopped by an agent's shells, or as COMMAND."""

from __future__ import annotations

import re

from tests.programs.program import AWAIT, Do, Program, See, Send, User

_POSTGRES = "export PATH=$(echo /usr/lib/postgresql/*/bin | tail -n 1):$PATH PGHOST=$PWD PGUSER=pg;"
_POSTGRES_IS_THERE = (
    "ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { echo needs postgresql; exit 1; }"
)
_INITDB = f"{_POSTGRES} initdb -D data -U pg -A trust --no-sync"
_SERVER = "-k $PWD -c listen_addresses= -c log_line_prefix="

_NGINX = """\
mkdir html; echo hello >html/index.html
cat >nginx.conf <<'EOF'
worker_processes 2;
error_log error.log notice;
pid nginx.pid;
events { }
http {
    access_log off;
    client_body_temp_path tmp1; proxy_temp_path tmp2; fastcgi_temp_path tmp3;
    uwsgi_temp_path tmp4; scgi_temp_path tmp5;
    server { listen unix:sock; root html; }
}
EOF
"""
_GET = "curl -s --unix-socket sock http://a/"
_UNTIL_GONE = f"{AWAIT} await test ! -e nginx.pid; ls nginx.pid"

_OF_NGINX = r"gracefully shutting down|SIG\w+|exited with code \d+|start worker processes"

_REDIS = (
    f"{AWAIT} redis-server --port 0 --unixsocket $PWD/s --daemonize yes --pidfile $PWD/pid"
    " --logfile $PWD/log >/dev/null; await redis-cli -s s ping;"
)


def _what_nginx_did(said: str) -> str:
    """Its processes write in any order."""
    return "\n".join(sorted(set(re.findall(_OF_NGINX, said)) - {"SIGIO", "SIGCHLD"}))


def _postgres(name: str, signal: str) -> Program:
    return Program(
        name=f"PostgreSQL as the command, {name} stop",
        there=_POSTGRES_IS_THERE,
        users=(User.ORDINARY,),
        before=_INITDB,
        line=("bash", "-c", f"{_POSTGRES} exec postgres -D data {_SERVER}"),
        acts=(
            See("database system is ready to accept connections"),
            Do(f"{_POSTGRES} psql -d postgres -Atc 'create table t as select 1; table t'"),
            Send(signal),
        ),
        after=f"{_POSTGRES} pg_controldata data | grep state",
        normalize=(
            (r"at \d{4}-\d\d-\d\d .*UTC", "at TIME"),
            (r"^LOG:  checkpoint .*\n", ""),
            (r"PID \d+", "PID"),
        ),
        ignore_files="^data/",
        interrupted=True,
    )


PROGRAMS = [
    Program(
        name="PostgreSQL",
        there=_POSTGRES_IS_THERE,
        users=(User.ORDINARY,),
        steps=(
            f"{_INITDB} | grep -e ^creating -e ^running",
            f"{_POSTGRES} pg_ctl -D data -w -l log -o '{_SERVER}' start",
            f"{_POSTGRES} pgbench -q -i -s 2 postgres 2>&1 | grep -o -e ^creating -e '^[^d].*[.]$'",
            f"{_POSTGRES} pgbench -c 4 -j 2 -t 60 postgres 2>&1 | grep processed",
            f"{_POSTGRES} psql -d postgres -At -c 'select count(*) from pgbench_accounts'"
            " -c 'vacuum analyze' -c 'listen a' -c 'notify a' | sed 's/PID [0-9]*/PID/'",
            f"{_POSTGRES} psql -d postgres -Atc 'select pg_sleep(60)' 2>&1 |"
            f" grep FATAL >said & {AWAIT} ended() {{ psql -d postgres -Atc"
            ' "select pg_terminate_backend(pid) from pg_stat_activity'
            " where wait_event = 'PgSleep'\""
            " | grep -m 1 t; }; await ended; wait; cat said; rm said",
            f"{_POSTGRES} pg_ctl -D data -w -m smart stop",
            f"{_POSTGRES} pg_ctl -D data -w -l log -o '{_SERVER}' start",
            f"{_POSTGRES} pg_ctl -D data -w -l log -m fast restart; pg_ctl -D data reload",
            f"{_POSTGRES} pg_ctl -D data status | head -n 1; pg_ctl -D data -m fast stop",
            f"{_POSTGRES} pg_controldata data | grep state",
        ),
        normalize=((r"PID: \d+", "PID"),),
        ignore_files="^data/|^log$",
        within_s=90,
    ),
    _postgres("fast", "INT"),
    _postgres("smart", "TERM"),
    _postgres("immediate", "QUIT"),
    Program(
        name="redis",
        needs=("redis-server", "redis-cli"),
        steps=(
            _REDIS,
            "redis-cli -s s set a 1; redis-cli -s s incr a; redis-cli -s s bgsave; redis-cli -s s"
            " eval 'return 7' 0; redis-cli -s s --raw lpush l x y",
            f"{AWAIT} pid=$(cat pid); kill $pid; await gone $pid;"
            " grep -o 'ready to exit, bye bye...' log",
            f"{_REDIS} redis-cli -s s get a; redis-cli -s s shutdown nosave; echo $?",
        ),
        ignore_files="^log$|rdb$",
    ),
    Program(
        name="redis as the command, interrupted",
        needs=("redis-server", "redis-cli"),
        line=(
            *("redis-server", "--port", "0", "--unixsocket", "s", "--save", "3600 1"),
            *("--logfile", ""),
        ),
        acts=(See("The server is now ready"), Do("redis-cli -s s set a 1"), Send("INT")),
        normalize=(
            (r"^\d+:(\w+ \d\d|signal-handler [(]\d+[)])( \w+ \d{4} [\d:.]+)? ", ""),
            (r"\bpid=\d+|PID: \d+", "PID"),
        ),
        ignore_files="rdb$",
        interrupted=True,
    ),
    Program(
        name="nginx",
        needs=("nginx", "curl", "pgrep"),
        before=_NGINX,
        steps=(
            "nginx -p . -c nginx.conf -t 2>&1 | tail -n 1",
            f"{AWAIT} two() {{ [ $(pgrep -c -P $(cat nginx.pid)) = 2 ]; }};"
            f" nginx -p . -c nginx.conf; await two; {_GET}",
            f"{AWAIT} old=$(pgrep -P $(cat nginx.pid)); nginx -p . -c nginx.conf -s reload; echo $?"
            f"; for pid in $old; do await gone $pid; done; {_GET}",
            "nginx -p . -c nginx.conf -s reopen; echo $?",
            f"nginx -p . -c nginx.conf -s quit; echo $?; {_UNTIL_GONE}",
            f"nginx -p . -c nginx.conf; kill $(cat nginx.pid); {_UNTIL_GONE};"
            " grep -c alert error.log; rm error.log",
        ),
        normalize=((r"^\d{4}/.*: signal", "signal"),),
        quick=True,
    ),
    Program(
        name="nginx as the command, quit",
        needs=("nginx", "curl"),
        before=_NGINX
        + "echo 'daemon off;' >>nginx.conf; sed -i 's/ error.log/ stderr/' nginx.conf",
        line=("nginx", "-p", ".", "-c", "nginx.conf", "-e", "stderr"),
        acts=(
            See(r"start worker process \d+\n.*start worker process \d+"),
            Do(_GET),
            Send("QUIT"),
        ),
        keep=_what_nginx_did,
        interrupted=True,
    ),
]
