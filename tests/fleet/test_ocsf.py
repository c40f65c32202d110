"""The SQL of docs/ocsf.sql, which sigwrap query answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from sigwrap.log.schema import VIEWS
from sigwrap.report.query import QueryDatabase
from tests.report.conftest import Scenario

SQL = Path(__file__).parents[2] / "docs" / "ocsf.sql"
_TO = {"destination": "a.org:443", "address": "1.2.3.4", "port": 443, "protocol": "tcp"}


@pytest.mark.parametrize(
    ("kind", "payload", "expected"),
    [
        ("exec_allowed", {"argv": ["ls", "a b"]}, (1007, 100701, 1, 1, "ls 'a b'")),
        ("exec_denied", {"argv": ["rm"]}, (1007, 100701, 2, 3, "rm")),
        ("exec_redirected", {"argv": ["rm"]}, (1007, 100701, 4, 2, "rm")),
        ("exec_allowed", {"argv": ["id"], "decision": "audit"}, (1007, 100701, 3, 1, "id")),
        ("process_exited", {"exit_code": 3}, (1007, 100702, 3, 1, None)),
        ("file_audited", {"path": "/a", "operation": "write"}, (1001, 100103, 3, 1, "/a")),
        ("file_audited", {"path": "/a", "operation": "unseen"}, (1001, 100100, 3, 1, "/a")),
        ("file_refused_likely", {"path": "/a"}, (1001, 100100, 2, 3, "/a")),
        ("connection_denied", {**_TO, "direction": "connect"}, (4001, 400101, 2, 3, "a.org:443")),
        ("connection_approved", {**_TO, "direction": "bind"}, (4001, 400107, 1, 1, "a.org:443")),
    ],
)
def test_each_kind_of_event_is_an_ocsf_event(
    tmp_path: Path,
    kind: str,
    payload: dict[str, object],
    expected: tuple[int, int, int, int, str | None],
) -> None:
    made = Scenario(tmp_path)
    made.add(kind, 7, **payload)
    made.end()
    database = QueryDatabase()
    database.fill(made.session, VIEWS.values(), lambda seen: None)
    names, rows = database.select(SQL.read_text())
    (row,) = (dict(zip(names, each, strict=True)) for each in rows)
    database.close()
    what = row["process.cmd_line"] or row["file.path"] or row["dst_endpoint.hostname"]
    found = (row["class_uid"], row["type_uid"], row["action_id"], row["severity_id"], what)
    assert found == expected
    assert (row["device.hostname"], row["policy.name"]) == ("box", "builtin:record")
    assert (row["time"], row["category_uid"]) == (1_763_705_001_000, expected[0] // 1000)
