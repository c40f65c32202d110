from __future__ import annotations

from sigwrap.hints import TYPE_CHECKING

if TYPE_CHECKING:
    from collections import Counter as Counter
    from collections import deque as deque
else:
    from _collections import deque as deque

    class Counter(dict):
        def __missing__(self, _):
            return 0
