from __future__ import annotations

from sigwrap.bare import TYPE_CHECKING

if TYPE_CHECKING:
    from signal import *  # noqa: F403
else:
    from _signal import *  # noqa: F403
