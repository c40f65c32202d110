from collections.abc import Callable, Mapping

from sigwrap.bare import Any

def set_up(
    listener: int,
    journal: int,
    child_signals: int,
    proc: int,
    root: tuple[int, int, int, int],
    mount_bit: int,
    first_left_to_others: int,
    counts_crowd: bool,
    most_children: int,
    most_processes: int,
    key: bytes,
    exit_event: bytes,
    exit_before_ppid: bytes,
    exit_after_code: bytes,
) -> None: ...
def serve(
    poll: int,
    ends: int,
    by_pid: Mapping[int, Any],
    remembered: Mapping[bytes, Any],
    paths: Mapping[bytes, Any],
    judge: Callable[..., None],
    seq: int,
    head: bytes,
    room: int,
    deadline_ns: int,
    request: bytes,
) -> tuple[Any, ...]: ...
