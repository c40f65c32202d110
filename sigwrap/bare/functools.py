from __future__ import annotations

from sigwrap.hints import TYPE_CHECKING

if TYPE_CHECKING:
    from functools import lru_cache as lru_cache
else:
    from _functools import _lru_cache_wrapper

    def lru_cache(maxsize):
        return lambda function: _lru_cache_wrapper(function, maxsize, False, _figures)

    def _figures(*figures):
        return figures
