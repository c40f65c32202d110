"""A lake in a folder, as `sigwrap ship` leaves it, and changes to its rows."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sigwrap.fleet.lake import SCRIPTS
from sigwrap.fleet.rows import Segment, segments
from sigwrap.log.reader import Session
from sigwrap.log.schema import VIEWS
from sigwrap.report.query import QueryDatabase
from tests.report.conftest import Scenario

Fields = dict[str, Any]


def land(session: Session, lake: Path) -> list[Path]:
    """Write the session's segments; return their files."""
    return [_write(lake, segment) for segment in segments(session)]


def _write(lake: Path, segment: Segment) -> Path:
    folder = lake / "rows" / "v1" / f"date={segment.date}" / segment.session
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{segment.name}.ndjson.gz"
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in segment.lines).encode()))
    return path


def landed(lake: Path) -> Iterator[Path]:
    yield from sorted(lake.rglob("*.ndjson.gz"))


def rows_in(path: Path) -> list[Fields]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def change_rows(lake: Path, change: Callable[[list[Fields]], list[Fields]]) -> None:
    """Let `change` replace the rows of each file."""
    for path in landed(lake):
        lines = (json.dumps(each) + "\n" for each in change(rows_in(path)))
        path.write_bytes(gzip.compress("".join(lines).encode()))


Select = Callable[[str], list[tuple[Any, ...]]]


@contextmanager
def asked_of_sqlite(scenarios: Iterable[Scenario]) -> Iterator[Select]:
    """Ask the logs themselves, as `sigwrap query` does."""
    with closing(QueryDatabase()) as database:
        for each in scenarios:
            database.fill(each.session, VIEWS.values(), lambda seen: None)
        yield lambda sql: list(database.select(sql)[1])


@contextmanager
def asked_of_clickhouse(lake: Path, date: str, *, loads: int = 1) -> Iterator[Select]:
    """Ask ClickHouse, which has loaded the lake's rows so often."""
    from chdb.session import Session as ClickHouse

    exact = "SETTINGS output_format_json_quote_64bit_integers = 0"
    with closing(ClickHouse(str(lake.parent / "clickhouse"))) as engine:
        engine.query("CREATE DATABASE fleet ENGINE = Atomic")
        engine.query("USE fleet")
        for statement in [*SCRIPTS["clickhouse"](str(lake), date)] * loads:
            if not statement.startswith("--"):
                engine.query(statement.rstrip(";"))

        def ask(sql: str) -> list[tuple[Any, ...]]:
            found = str(engine.query(f"{sql} {exact}", "JSONCompactEachRow"))
            return [tuple(json.loads(line)) for line in found.splitlines()]

        yield ask


def record_everything(made: Scenario) -> None:
    """Record an event for each view, with odd texts, and end the session."""
    odd = "a b' \\ \udcff\x1b[0m é"
    made.execute(10, 1, "npm", "start", odd)
    made.deny(11, 10, "no-push", "git", "push", odd, comm="sh", reason="left to people")
    made.add("exec_failed", 10, path="/usr/bin/npm", error="ENOENT", rule_name="")
    made.execute(10, 1, "node", "x")
    made.signal("SIGTERM", "npm", "node", "session")
    sent = {"signal": 15, "signal_name": "SIGTERM", "source_pid": 11, "source_cmd": "sh"}
    to = {"target_pid": 99, "target_cmd": odd, "decision": "deny", "rule_name": "no-kill"}
    made.add("signal_blocked", 11, **sent, **to, count=3, evaluation_us=12)
    where = {"comm": "curl", "direction": "connect", "protocol": "tcp"}
    at = {"destination": "example.org:443", "address": "192.0.2.1", "port": 443}
    made.add("connection_denied", 12, **where, **at, rule_name="hosts", decision="deny")
    made.add("connection_allowed", 12, **where, **at, rule_name="hosts", decision="audit")
    asked = {"approval_id": "ab12", "what": "npm ci", "rule_name": "pkg", "by": "ann"}
    made.add("approval_granted", 10, **asked, waited_ms=40)
    made.add("work_handed_outside", 12, comm="x", socket="/run/s", peer_argv=["d", odd])
    made.add("file_audited", 12, comm="sh", operation="rename", path="/a", to="/b")
    made.add("tool_call_judged", 1, agent="claude", tool="Bash", what=odd, answer="deny")
    made.exit(11, 1)
    made.exit(10, None, "SIGKILL")
    made.end(exit_status=137)
