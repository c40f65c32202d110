"""Define an Enum whose classes are made ten times as fast as enum's: a start makes forty.

Differences: only the class body names members, each has a value of its own, and flags cannot be
combined.
"""

from __future__ import annotations

from sigwrap.hints import TYPE_CHECKING

if TYPE_CHECKING:
    from enum import Enum as Enum
    from enum import IntEnum as IntEnum
else:

    class _Meta(type):
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

        def __reversed__(cls):
            return reversed(cls._by_value.values())

        def __len__(cls):
            return len(cls._by_value)

        def __contains__(cls, member):
            return type(member) is cls

        def __getitem__(cls, name):
            return cls.__members__[name]

        @property
        def __members__(cls):
            return {member.name: member for member in cls}

    class Enum(metaclass=_Meta):
        def __repr__(self):
            return f"<{type(self).__name__}.{self.name}: {self.value!r}>"

        def __str__(self):
            return f"{type(self).__name__}.{self.name}"

        def __copy__(self):
            return self

        def __deepcopy__(self, _):
            return self

        def __reduce__(self):
            return type(self), (self.value,)

    class IntEnum(int, Enum):
        __repr__ = Enum.__repr__
        __str__ = int.__repr__
