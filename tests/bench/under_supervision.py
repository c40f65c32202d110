"""The workloads natively, under sigwrap and under its peers."""

from __future__ import annotations

from tests.bench.beside import Line, beside
from tests.bench.measuring import TOO_LONG_S, Failed
from tests.bench.results import OURS, Result
from tests.bench.setting import Setting, sigwrap
from tests.bench.workloads import ALL, Missing

_NEEDED = ("native", OURS)
_PEER_TOO_LONG_S = 30.0


def measure(setting: Setting, key: str) -> Result | None:
    make, usual, quick = ALL[key]
    try:
        workload = make(setting.make_folder(key), setting.amount(usual, quick))
    except Missing as missing:
        setting.say(f"{key}: left out: not installed: {missing}")
        return None
    prefixes = {"native": (), OURS: sigwrap(*workload.options)}
    prefixes |= {
        peer.name: peer.before(workload.calls)
        for peer in setting.loggers
        if workload.is_of_execs or not peer.logs_only_execs
    }
    lines = {
        name: Line(
            prefix=prefix,
            words=workload.line,
            folder=workload.folder,
            most_s=TOO_LONG_S if name in _NEEDED else _PEER_TOO_LONG_S,
        )
        for name, prefix in prefixes.items()
    }

    def left_out(name: str, failed: Failed) -> None:
        if name in _NEEDED:
            raise failed
        setting.say(f"{name}: left out of {key}: {failed}")

    return beside(
        key,
        workload.name,
        lines,
        rounds=setting.rounds,
        unit=workload.unit,
        units=workload.units,
        left_out=left_out,
    )
