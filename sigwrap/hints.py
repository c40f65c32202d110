"""Provide typing's names for modules that a run imports: typing takes 4 ms to import, and a run
checks no types."""

from __future__ import annotations

TYPE_CHECKING = False  # to a type checker, this name is true

if TYPE_CHECKING:
    from typing import IO as IO
    from typing import Any as Any
    from typing import AnyStr as AnyStr
    from typing import Generic as Generic
    from typing import NoReturn as NoReturn
    from typing import Protocol as Protocol
    from typing import TypeVar as TypeVar
else:
    IO = Any = AnyStr = NoReturn = object

    class Protocol:
        __slots__ = ()

    class Generic:
        __slots__ = ()

        def __class_getitem__(cls, _):
            return cls

    def TypeVar(name, *bounds, **options):  # noqa: N802
        return None
