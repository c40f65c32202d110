from __future__ import annotations

from sigwrap.hints import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import suppress as suppress
else:

    class suppress:  # noqa: N801
        __slots__ = ("_kinds",)

        def __init__(self, *kinds):
            self._kinds = kinds

        def __enter__(self):
            return None

        def __exit__(self, kind, _error, _traceback):
            return kind is not None and issubclass(kind, self._kinds)
