"""sigwrap with tables that are full within seconds: what grows then grows for good. With `--leak`
as the first argument, something is left of each event, and a descriptor of some. The others are
those of sigwrap."""

from __future__ import annotations

import os
import sys

from sigwrap.approve import requests
from sigwrap.cli.main import main
from sigwrap.exec import content, repeated
from sigwrap.policy.judge import engine
from sigwrap.session import lineage
from sigwrap.session.recorder import Recorder

for module, name in (
    (lineage, "_IMAGES_KEPT"),
    (content, "_KEPT"),
    (requests, "_SETTLED_KEPT"),
    (engine, "MAX_KEPT_CANDIDATES"),
    (repeated, "_KEPT"),
):
    assert isinstance(getattr(module, name), int)
    setattr(module, name, 50)


def leak() -> None:
    kept = []
    records = Recorder.record

    def record(self, event, pid, payload):
        kept.append(bytearray(10_000))
        if len(kept) % 50 == 0:
            os.open("/dev/null", os.O_RDONLY)
        return records(self, event, pid, payload)

    Recorder.record = record


if sys.argv[1] == "--leak":
    del sys.argv[1]
    leak()
sys.exit(main(sys.argv[1:]))
