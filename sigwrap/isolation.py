"""Keep variables and the current folder, which a project may set, from choosing what we import.

If they would choose, sigwrap restarts Python with -I, which ignores them. The command still gets
the variables.
"""

from __future__ import annotations

import os
import sys

# Variables that choose files which Python runs.
_CHOOSE_CODE = (
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONPLATLIBDIR",
    "PYTHONPYCACHEPREFIX",
    "PYTHONUSERBASE",
    "PYTHONWARNINGS",
)
# Packages beside sigwrap come after the standard library, as usual.
_START = (
    "import sys; sys.path.append(sys.argv[1]); del sys.argv[:2]; import site; site.main();"
    "from sigwrap.__main__ import main; main()"
)


def isolate() -> None:
    if sys.flags.isolated or getattr(sys, "frozen", False):
        return
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if code_is_chosen_by_variables() or _starts_with_current_folder():
        restart("-S", "-c", _START, package)
    _leave_out_users_packages(package)


def code_is_chosen_by_variables() -> bool:
    return any(map(os.environ.__contains__, _CHOOSE_CODE))


def restart(*words: str) -> None:
    os.execve(sys.executable, [sys.executable, "-I", *words, *sys.argv], _environment())


def _environment() -> dict[bytes, bytes]:
    try:
        with open("/proc/self/environ", "rb") as file:  # Python may add to os.environ
            pairs = (entry.partition(b"=") for entry in file.read().split(b"\0"))
            return {name: value for name, equals, value in pairs if name and equals}
    except OSError:
        return dict(os.environb)  # without /proc, sigwrap runs no command


def _starts_with_current_folder() -> bool:
    """Return whether Python looks there first, as for `python -m sigwrap`."""
    first = sys.path[0] if sys.path and not sys.flags.safe_path else None
    try:
        return first == "" or first == os.getcwd()
    except OSError:
        return True  # the folder was removed


def _leave_out_users_packages(package: str) -> None:
    """Remove ~/.local from sys.path if sigwrap is not installed there."""
    site = sys.modules.get("site")
    folder = getattr(site, "USER_SITE", None) if getattr(site, "ENABLE_USER_SITE", None) else None
    if folder in sys.path and folder != package:
        sys.path.remove(folder)
