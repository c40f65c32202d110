"""Ship real sessions to a real OpenTelemetry Collector, and compare what it received.

`make test-engines` runs it. It needs Go, whose module proxy has the pinned builder and its parts.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sigwrap.fleet.otlp import LOGS, TRACES, requests
from sigwrap.fleet.otlp_sender import ship_otlp
from sigwrap.log.catalog import list_sessions
from sigwrap.log.reader import Session
from tests.support.waiting import await_that

VERSION = "v0.161.0"
CORE, MORE = (
    "go.opentelemetry.io/collector",
    "github.com/open-telemetry/opentelemetry-collector-contrib",
)
BUILD = f"""
dist: {{name: otelcol, output_path: ., module: example.test/otelcol}}
receivers: [{{gomod: {CORE}/receiver/otlpreceiver {VERSION}}}]
exporters: [{{gomod: {MORE}/exporter/fileexporter {VERSION}}}]
"""
COMMANDS = (
    ("agent-default", "ls / | wc -l; (sleep 0.01; date); kill -0 1; exit 3"),
    ("ci", "for each in $(seq 300); do ls >/dev/null; done; curl -s http://127.0.0.1:9/; true"),
    ("agent-strict", "git push"),
)
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def collector(folder: Path) -> Path:
    """Build the collector, unless the folder has it."""
    program = folder / "otelcol"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "build.yaml").write_text(BUILD)
        builder = f"{CORE}/cmd/builder@{VERSION}"
        for line in (["go", "install", builder], ["./builder", "--config", "build.yaml"]):
            subprocess.run(line, cwd=folder, env={**os.environ, "GOBIN": str(folder)}, check=True)
    return program


def received(file: Path, outer: str, inner: str, each: str) -> Iterator[dict[str, Any]]:
    for line in file.read_text().splitlines():
        for resource in json.loads(line)[outer]:
            for scope in resource[inner]:
                yield from scope[each]


def attribute(record: dict[str, Any], name: str) -> str:
    found = {each["key"]: each["value"] for each in record["attributes"]}
    return str(*found[name].values())


def main() -> None:
    if not shutil.which("go"):
        sys.exit("collector.py needs Go 1.25 or newer: install it")
    program = collector(Path(__file__).parents[3] / "dist" / f"otelcol-{VERSION}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for policy, command in COMMANDS:
            line = [sys.executable, "-m", "sigwrap", "--store", name, "-p", policy, "-c", command]
            subprocess.run(line, env={**os.environ, "TRACEPARENT": PARENT})
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        files = {signal: {"path": str(folder / signal)} for signal in (LOGS, TRACES)}
        pipelines = {s: {"receivers": ["otlp"], "exporters": [f"file/{s}"]} for s in files}
        config = {
            "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}},
            "exporters": {f"file/{signal}": file for signal, file in files.items()},
            "service": {"pipelines": pipelines, "telemetry": {"metrics": {"level": "none"}}},
        }
        (folder / "config.json").write_text(json.dumps(config))
        server = subprocess.Popen([program, "--config", folder / "config.json"])
        try:
            await_that(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)
            sessions = [Session(each.id, each.path) for each in list_sessions(name)]
            for session in sessions:
                ship_otlp(session, f"otlp+http://127.0.0.1:{port}", {}, 30)
        finally:
            server.terminate()
            server.wait()
        logs = [*received(folder / LOGS, "resourceLogs", "scopeLogs", "logRecords")]
        spans = [*received(folder / TRACES, "resourceSpans", "scopeSpans", "spans")]
        events = [event for session in sessions for event in session.events()]
        hashes = [attribute(record, "sigwrap.hash") for record in logs]
        assert sorted(hashes) == sorted(event.hash for event in events)
        sent = [
            span["spanId"]
            for session in sessions
            for request in requests(TRACES, session.id, session.events())
            for span in request.body["resourceSpans"][0]["scopeSpans"][0]["spans"]
        ]
        assert sorted(span["spanId"] for span in spans) == sorted(sent)
        assert {span["traceId"] for span in spans} == {PARENT.split("-")[1]}
        print(f"{len(events)} events, {len(logs)} logs, {len(spans)} spans")  # noqa: T201


if __name__ == "__main__":
    main()
