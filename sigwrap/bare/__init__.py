"""Replace modules of the standard library that are slow to import. Each takes a tenth of the time,
and behaves the same for all that sigwrap uses. Here are typing's names (a run checks no types),
NamedTuple, Enum, suppress, lru_cache, deque, Counter, signals without the enumerations of their
numbers, and digests without OpenSSL.

socket      sockets, without files and host names
re          regular expressions, compiled when first needed
json        writes JSON; imports json only to read it
sqlite3     SQLite

A start defines forty enumerations and a hundred tuples. typing compiles a constructor for each
NamedTuple, this module one for each number of fields. Differences: such a tuple has no subclasses,
and it never equals an instance of another class, even with the same values. Of an Enum, only the
class body names members, each has a value of its own, and flags cannot be combined.
"""

from __future__ import annotations

TYPE_CHECKING = False  # to a type checker, this name is true

if TYPE_CHECKING:
    import signal as signal
    from collections import Counter as Counter
    from collections import deque as deque
    from contextlib import suppress as suppress
    from enum import Enum as Enum
    from enum import IntEnum as IntEnum
    from functools import lru_cache as lru_cache
    from hashlib import blake2b as blake2b
    from hashlib import sha256 as sha256
    from typing import IO as IO
    from typing import Any as Any
    from typing import AnyStr as AnyStr
    from typing import Generic as Generic
    from typing import NamedTuple as NamedTuple
    from typing import NoReturn as NoReturn
    from typing import Protocol as Protocol
    from typing import TypeVar as TypeVar
else:
    import _signal as signal  # noqa: F401
    from _blake2 import blake2b as blake2b
    from _collections import _tuplegetter
    from _collections import deque as deque
    from _functools import _lru_cache_wrapper
    from types import FunctionType

    try:
        from _sha256 import sha256 as sha256
    except ImportError:  # Python 3.12
        from _sha2 import sha256 as sha256

    IO = Any = AnyStr = NoReturn = object

    class Protocol:
        __slots__ = ()

    class Generic:
        __slots__ = ()

        def __class_getitem__(cls, _):
            return cls

    def TypeVar(name, *bounds, **options):  # noqa: N802
        return None

    class suppress:  # noqa: N801
        __slots__ = ("_kinds",)

        def __init__(self, *kinds):
            self._kinds = kinds

        def __enter__(self):
            return None

        def __exit__(self, kind, _error, _traceback):
            return kind is not None and issubclass(kind, self._kinds)

    def lru_cache(maxsize):
        return lambda function: _lru_cache_wrapper(function, maxsize, False, _figures)

    def _figures(*figures):
        return figures

    class Counter(dict):
        def __missing__(self, _):
            return 0

    _make = tuple.__new__

    class _Base(tuple):
        __slots__ = ()

        @classmethod
        def _make(cls, values):
            values = tuple(values)
            if len(values) != len(cls._fields):
                raise TypeError(f"{cls.__name__} takes {len(cls._fields)} values")
            return _make(cls, values)

        def _replace(self, /, **named):
            values = tuple(map(named.pop, self._fields, self))
            if named:
                raise ValueError(f"{type(self).__name__} has no {sorted(named)}")
            return _make(type(self), values)

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            fields = (f"{name}={value!r}" for name, value in self._asdict().items())
            return f"{type(self).__name__}({', '.join(fields)})"

        def __eq__(self, other):
            return type(other) in (type(self), tuple) and tuple.__eq__(self, other)

        def __ne__(self, other):
            return not self == other

        __hash__ = tuple.__hash__

    _codes = {}  # by the number of fields

    def _constructor(fields, defaults):
        code = _codes.get(len(fields))
        if code is None:
            values = "".join(f"_{number}, " for number in range(len(fields)))
            code = _codes[len(fields)] = eval(
                f"lambda _cls, {values}: _make(_cls, ({values}))"
            ).__code__
        named = code.replace(co_name="__new__", co_varnames=("_cls", *fields))
        return FunctionType(named, {"_make": _make}, "__new__", tuple(defaults.values()))

    def _make_first(cls, *values, **named):
        """Make the constructor at the first call: a run has no use for most of the tuples."""
        cls.__new__ = staticmethod(_constructor(cls._fields, cls._field_defaults))
        return cls.__new__(cls, *values, **named)

    class _TupleMeta(type):
        def __new__(cls, name, bases, namespace):
            fields = tuple(namespace.pop("__annotations__", ()))
            defaults = {field: namespace.pop(field) for field in fields if field in namespace}
            for position, field in enumerate(fields):
                namespace[field] = _tuplegetter(position, None)
            namespace |= {
                "__slots__": (),
                "__match_args__": fields,
                "_fields": fields,
                "_field_defaults": defaults,
                "__new__": _make_first,
            }
            return type.__new__(type, name, (_Base,), namespace)

    NamedTuple = type.__new__(_TupleMeta, "NamedTuple", (), {})

    class _EnumMeta(type):
        def __new__(cls, name, bases, namespace):
            values = {
                each: value
                for each, value in namespace.items()
                if each[0] != "_" and not hasattr(value, "__get__")
            }
            for each in values:
                del namespace[each]
            made = type.__new__(cls, name, bases, namespace)
            made._by_value = by_value = {}
            for each, value in values.items():
                member = int.__new__(made, value) if issubclass(made, int) else object.__new__(made)
                member.name, member.value = each, value
                by_value[value] = member
                type.__setattr__(made, each, member)
            return made

        def __call__(cls, value):
            if type(value) is cls:
                return value
            try:
                return cls._by_value[value]
            except (KeyError, TypeError):
                raise ValueError(f"{value!r} is not a valid {cls.__name__}") from None

        def __iter__(cls):
            return iter(cls._by_value.values())

        def __len__(cls):
            return len(cls._by_value)

        def __contains__(cls, member):
            return type(member) is cls

        @property
        def __members__(cls):
            return {member.name: member for member in cls}

    class Enum(metaclass=_EnumMeta):
        def __repr__(self):
            return f"<{type(self).__name__}.{self.name}: {self.value!r}>"

        def __str__(self):
            return f"{type(self).__name__}.{self.name}"

        def __deepcopy__(self, _):
            return self

    class IntEnum(int, Enum):
        __repr__ = Enum.__repr__
        __str__ = int.__repr__
