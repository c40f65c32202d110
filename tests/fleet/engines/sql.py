"""Compare the answers of Spark and Trino with DuckDB's, by hand: no other test installs them.

The questions are those of test_lake.py and of the page, about a lake of real sessions. `make
test-engines` installs the clients. Spark needs Java 17; Trino needs trino-server 476 in the
directory $TRINO, and Java 24 in $JAVA_HOME.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sigwrap.fleet import questions
from sigwrap.fleet.duck import Lake
from sigwrap.fleet.lake import SCRIPTS
from sigwrap.log.catalog import list_sessions
from sigwrap.log.reader import Session
from tests.fleet.test_lake import QUESTIONS
from tests.support.lakes import land

Run = Callable[[str], list[tuple[Any, ...]]]
_COMMANDS = (
    "git status; git push --force; true",
    "kill -0 1; sleep 5 & kill $!; wait",
    "python3 -c 'import socket; socket.socket().connect_ex((\"127.0.0.1\", 9))'",
    "sh -c 'true é'; npm publish; false",
)
_SESSIONS = 20
_PERIOD = {"since": "2000", "until": "2100", "fresh": "2000", "width": 10}
_ASKED = QUESTIONS | {
    f"the page's {name}": sql.format(**_PERIOD) for name, sql in questions.QUESTIONS.items()
}
_CONFIG = {
    "node.properties": "node.environment=test\nnode.id=t1\nnode.data-dir={folder}/data\n",
    "jvm.config": "-server\n-Xmx2G\n-XX:+UseG1GC\n-Djdk.attach.allowAttachSelf=true\n",
    "config.properties": "coordinator=true\nnode-scheduler.include-coordinator=true\n"
    "http-server.http.port={port}\ndiscovery.uri=http://127.0.0.1:{port}\n"
    "node.internal-address=127.0.0.1\n",
    "catalog/lake.properties": "connector.name=hive\nhive.metastore=file\n"
    "hive.metastore.catalog.dir=local:///meta\nfs.native-local.enabled=true\n"
    "local.location={folder}\nhive.non-managed-table-writes-enabled=true\n",
}


def make_lake(folder: Path) -> tuple[Path, str]:
    """Run real sessions, land and compact them; return the lake and its date."""
    store, lake = folder / "store", folder / "lake"
    sigwrap = str(Path(sys.executable).with_name("sigwrap"))
    for number in range(_SESSIONS):
        command = _COMMANDS[number % len(_COMMANDS)]
        line = [sigwrap, "--label", f"repo=acme/{number % 3}", "--", "sh", "-c", command]
        output = subprocess.DEVNULL
        env = {**os.environ, "SIGWRAP_STORE": str(store)}
        subprocess.run(line, env=env, stdout=output, stderr=output, check=False)
    for file in list_sessions(str(store)):
        land(Session(file.id, file.path), lake)
    reader = Lake(f"file://{lake}", {})
    (date,) = reader.compact([time.strftime("%Y-%m-%d", time.gmtime())])
    return lake, date


@contextmanager
def spark(lake: Path, date: str) -> Iterator[Run]:
    from pyspark.sql import SparkSession

    made = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for name in ("spark.driver.bindAddress", "spark.driver.host"):
        made = made.config(name, "127.0.0.1")
    made = made.config("spark.sql.warehouse.dir", str(lake / "warehouse"))
    session = made.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    try:
        for statement in SCRIPTS["spark"](str(lake), date):
            session.sql(statement.rstrip(";"))
        yield lambda sql: [tuple(row) for row in session.sql(sql).collect()]
    finally:
        session.stop()


@contextmanager
def trino(lake: Path, date: str, server: str) -> Iterator[Run]:
    import trino as client

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    etc = lake.parent / "etc"
    for name, text in _CONFIG.items():
        (etc / name).parent.mkdir(parents=True, exist_ok=True)
        (etc / name).write_text(text.format(port=port, folder=lake.parent), encoding="utf-8")
    launcher = [f"{server}/bin/launcher", "run", "--etc-dir", str(etc)]
    with subprocess.Popen(launcher, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        try:
            about = {"host": "127.0.0.1", "port": port, "user": "test"}
            cursor = client.dbapi.connect(**about, catalog="lake", schema="fleet").cursor()

            def run(sql: str) -> list[tuple[Any, ...]]:
                cursor.execute(sql)
                return [tuple(row) for row in cursor.fetchall()]

            _await(lambda: run("SELECT 1 FROM system.runtime.nodes WHERE coordinator"))
            run("CREATE SCHEMA fleet WITH (location = 'local:///schema')")
            for statement in SCRIPTS["trino"]("local:///lake", date):
                if not statement.startswith("--"):
                    run(statement.rstrip(";"))
            _await(lambda: run("SELECT count(*) FROM rows_sessions"))  # its worker comes up later
            yield run
        finally:
            child.terminate()


def _await(try_it: Callable[[], object], within_s: float = 180) -> None:
    deadline = time.monotonic() + within_s
    while True:
        try:
            try_it()
            return
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


def main(engine: str, *server: str) -> int:
    with tempfile.TemporaryDirectory() as name:
        lake, date = make_lake(Path(name))
        duckdb = Lake(f"file://{lake}", {})
        duckdb.make_views()
        expected = {each: list(duckdb.select(sql)[1]) for each, sql in _ASKED.items()}
        different = 0
        made = spark(lake, date) if engine == "spark" else trino(lake, date, *server)
        with made as run:
            for each, sql in _ASKED.items():
                started = time.monotonic()
                found = run(sql)
                is_same = found == expected[each]
                different += not is_same
                took = time.monotonic() - started
                said = (
                    "as DuckDB" if is_same else f"NOT as DuckDB: {found[:2]} {expected[each][:2]}"
                )
                print(f"{engine}: {each}: {len(found)} rows in {took:.2f} s, {said}")  # noqa: T201
    return different


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
