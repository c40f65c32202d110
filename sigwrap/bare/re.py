"""Import re, and compile a regular expression, only when it is first needed. Most runs need
none."""

from __future__ import annotations

from sigwrap.bare import TYPE_CHECKING

if TYPE_CHECKING:
    from re import *  # noqa: F403
    from re import Match as Match
    from re import Pattern as Pattern
else:
    DOTALL, IGNORECASE = 16, 2
    _SPECIAL = {ord(each): f"\\{each}" for each in "()[]{}?*+-|^$\\.&~# \t\n\r\v\f"}

    class compile:  # noqa: A001, N801
        __slots__ = ("_flags", "_made", "_pattern")

        def __init__(self, pattern, flags=0):
            self._pattern, self._flags = pattern, flags
            self._made = None

        def __getattr__(self, name):
            if self._made is None:
                import re

                self._made = re.compile(self._pattern, self._flags)
            return getattr(self._made, name)

    def escape(text):
        return text.translate(_SPECIAL)

    def fullmatch(pattern, text):
        import re

        return re.fullmatch(pattern, text)

    def match(pattern, text):
        import re

        return re.match(pattern, text)

    def search(pattern, text):
        import re

        return re.search(pattern, text)

    def findall(pattern, text, flags=0):
        import re

        return re.findall(pattern, text, flags)

    def finditer(pattern, text):
        import re

        return re.finditer(pattern, text)

    def sub(pattern, replacement, text):
        import re

        return re.sub(pattern, replacement, text)
