from __future__ import annotations

import os

from sigwrap.linux import procfs


def test_an_image_is_what_stat_says_of_it() -> None:
    found = procfs.stat(os.getpid())
    assert found is not None
    assert procfs.image(os.getpid()) == found.image != ()
    assert procfs.image(2**22 + 1) is None
