"""`make endurance`: a session under a mixed load for as long as one likes, and short ones beside
it. Ends with a verdict for each thing that could grow, and a picture."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from math import inf
from pathlib import Path

from tests.endurance.load import Failed, ShortSessions, load
from tests.endurance.picture import picture
from tests.endurance.sampling import Sample, Sampler
from tests.endurance.verdict import Found, verdict
from tests.support.harness import UNDER_TEST, Sigwrap

DOCS = Path(__file__).parents[2] / "docs"
PICTURE, PAGE = DOCS / "endurance.svg", DOCS / "reliability.md"
BEGIN, END = "<!-- verdict: make endurance -->", "<!-- verdict end -->"
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
    is_over: threading.Event | None = None,
) -> list[Sample]:
    """`most`: so many samples; one of `asks_every` has a question; `is_over`: before its time.

    The session ends with 0, and its log holds; so do those of the short ones beside it."""
    samples: list[Sample] = []
    is_over = is_over or threading.Event()
    with load(subject, line) as session, ShortSessions(subject) as beside:
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
    parser.add_argument("--write", action="store_true", help="picture and verdict, into docs")
    chosen = parser.parse_args()
    samples = _endured(chosen.minutes * 60)
    found = verdict(samples)
    for each in found:
        sys.stdout.write(f"{each}\n")
    if chosen.write:
        PICTURE.write_text(picture(samples, found), encoding="utf-8")
        page = PAGE.read_text(encoding="utf-8")
        before, after = page.partition(BEGIN)[0], page.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n\n{table(found)}\n\n{END}{after}", encoding="utf-8")
    return 0 if all(each.is_flat for each in found) else 1


def _endured(seconds: float) -> list[Sample]:
    folder = Path(tempfile.mkdtemp(prefix="sigwrap-endurance-"))
    subject = Sigwrap(folder, folder / "store")
    is_over = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: is_over.set())
    every_s = min(_EVERY_S, seconds / _SAMPLES)
    try:
        samples = endure(subject, [UNDER_TEST], seconds=seconds, every_s=every_s, is_over=is_over)
        subject.clean_up()
        return samples
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def table(found: Sequence[Found]) -> str:
    rows = [
        f"| {each.series.name} | {each.median:,.0f} {each.series.unit} | {each.gains:+,.1f} "
        f"| {each.bound:,.0f}{'' if each.is_flat else ', exceeded'} |"
        for each in found
    ]
    return "\n".join(["| | median | growth | allowed |\n| --- | --- | --- | --- |", *rows])


if __name__ == "__main__":
    os.nice(5)
    sys.exit(main())
