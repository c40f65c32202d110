"""`make endurance`: a session under a mixed load for as long as one likes, and short sessions beside
it. Ends with a verdict for each thing that could grow, and a picture."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from math import inf
from pathlib import Path

from tests.endurance.load import COUNTED, Failed, ShortSessions, load
from tests.endurance.picture import picture
from tests.endurance.sampling import Sample, Sampler
from tests.endurance.verdict import verdict
from tests.support.harness import UNDER_TEST, Sigwrap

PICTURE = Path(__file__).parents[2] / "docs" / "endurance.svg"
_ROUNDS, _EVERY_S, _SAMPLES = 20, 5.0, 200


def endure(
    subject: Sigwrap,
    line: Sequence[str],
    *,
    seconds: float = inf,
    most: float = inf,
    every_s: float = 0.0,
    rounds: int = _ROUNDS,
    asks_every: int = 1,
    limits: str = "",
    is_over: threading.Event | None = None,
) -> list[Sample]:
    """`most`: so many samples; one of `asks_every` has a question. `is_over`: before its time. The session ends with 0, and its log holds; so do those of the short ones beside it."""
    samples: list[Sample] = []
    is_over = is_over or threading.Event()
    with load(subject, line, limits) as session, ShortSessions(subject) as beside:
        sampler, until_s = Sampler(session), time.monotonic() + seconds
        try:
            while (now_s := time.monotonic()) < until_s and len(samples) < most:
                if is_over.is_set():
                    break
                asks = len(samples) % asks_every == 0
                samples.append(sampler.after(rounds, asks=asks))
                is_over.wait(max(0.0, now_s + every_s - time.monotonic()))
        finally:
            sampler.close()
            status = session.end()
    if status or beside.failures or not beside.count:
        said = b"".join([*beside.failures, *session.said]).decode(errors="replace")
        raise Failed(f"status {status}, {beside.count} short sessions: {said}")
    return samples


def main() -> int:
    parser = argparse.ArgumentParser(prog="make endurance")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--counted", action="store_true", help="forks are mediated, too")
    parser.add_argument("--picture", type=Path, help=f"write it, such as {PICTURE.name}")
    parser.add_argument("--samples", type=Path, help="write them, as JSON")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="sigwrap-endurance-"))
    subject = Sigwrap(folder, folder / "store")
    is_over = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: is_over.set())
    try:
        samples = endure(
            subject,
            [UNDER_TEST],
            seconds=chosen.minutes * 60,
            every_s=min(_EVERY_S, chosen.minutes * 60 / _SAMPLES),
            limits=COUNTED if chosen.counted else "",
            is_over=is_over,
        )
        subject.clean_up()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if chosen.samples:
        chosen.samples.write_text(json.dumps([asdict(each) for each in samples]))
    found = verdict(samples)
    for each in found:
        sys.stdout.write(f"{each}\n")
    if chosen.picture:
        chosen.picture.write_text(picture(samples, found), encoding="utf-8")
    return 0 if all(each.is_flat for each in found) else 1


if __name__ == "__main__":
    os.nice(5)
    sys.exit(main())
