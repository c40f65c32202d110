"""How a hook inside a session tells its supervisor about a tool call: one datagram each."""

from __future__ import annotations

import os

from sigwrap.bare import json, socket
from sigwrap.hints import Any
from sigwrap.protocols.control import control_folder, socket_path

SUFFIX = ".calls"
MOST_BYTES = 16 * 1024


def send(store: str, session_id: str, payload: dict[str, Any]) -> bool:
    """Return False if no supervisor takes it: the session has another store, or has ended."""
    text = json.dumps(payload).encode()
    if "/" in session_id or len(text) > MOST_BYTES:
        return False
    try:
        folder = os.open(control_folder(store), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        end.sendto(text, socket_path(folder, session_id + SUFFIX))
    except OSError:
        return False
    finally:
        end.close()
        os.close(folder)
    return True
