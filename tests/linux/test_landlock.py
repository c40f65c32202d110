"""What a domain keeps from who is in it, whatever filter stands before it."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from sigwrap.kernel import landlock

SCRIPT = """
import socket, sys
from sigwrap.kernel import landlock
connects = sys.argv[2] == "connects"
landlock.enter_domain(landlock.make_ruleset((), (), keeps_signals=True, connects=connects))
print(socket.socket().connect_ex(("127.0.0.1", int(sys.argv[1]))))
"""


@pytest.mark.skipif(not landlock.is_available(), reason=f"needs {landlock.NEEDS}")
@pytest.mark.parametrize(("who", "found"), [("connects", "0"), ("waits", "13")])
def test_nobody_in_it_connects_by_tcp_on_his_own(who: str, found: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = (sys.executable, "-c", SCRIPT, str(server.getsockname()[1]), who)
        assert subprocess.run(words, capture_output=True, text=True).stdout.strip() == found
