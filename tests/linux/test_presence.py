from __future__ import annotations

import os
from pathlib import Path

from sigwrap.approve.control_socket import attend, is_attended


def folder(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY)


def test_whoever_ends_is_gone(tmp_path: Path) -> None:
    asking = folder(tmp_path)
    child = os.fork()
    if child == 0:
        attend(folder(tmp_path))
        os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    assert not is_attended(asking)
    os.close(asking)
