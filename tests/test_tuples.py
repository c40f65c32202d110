"""Cheap named tuples are typing's in all that sigwrap uses of them."""

from __future__ import annotations

import typing
from typing import Any

import pytest

from sigwrap.bare import NamedTuple


class Cheap(NamedTuple):
    """What it is."""

    a: int
    b: str = "x"
    c: tuple[int, ...] = ()

    @property
    def twice(self) -> int:
        return 2 * self.a


class Other(NamedTuple):
    a: int
    b: str = "x"
    c: tuple[int, ...] = ()


class Typed(typing.NamedTuple):
    a: int
    b: str = "x"
    c: tuple[int, ...] = ()


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((1,), {}),
        ((1, "y"), {}),
        ((1, "y", (2,)), {}),
        ((), {"a": 1}),
        ((1,), {"c": (3,)}),
        ((), {"c": (3,), "b": "z", "a": 1}),
        ((1,), {"b": "z", "c": (3,)}),
    ],
)
def test_it_is_made_as_typings_is(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    assert tuple(Cheap(*values, **named)) == tuple(Typed(*values, **named))


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((), {}),
        ((1, "y", (), 4), {}),
        ((1,), {"d": 2}),
        ((1,), {"a": 2}),
        ((1, "y"), {"a": 2}),
        ((), {"a": 1, "b": "", "d": ()}),
    ],
)
def test_what_typing_refuses_is_refused(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    for kind in (Typed, Cheap):
        made: Any = kind
        with pytest.raises(TypeError):
            made(*values, **named)


def test_it_is_read_changed_and_shown_as_typings_is() -> None:
    one = Cheap(1)
    assert (one.a, one.b, one.twice, one[0]) == (1, "x", 2, 1)
    assert one._replace(b="y") == Cheap(1, "y")
    assert one._asdict() == {"a": 1, "b": "x", "c": ()}
    assert Cheap._make([1, "y", ()]) == Cheap(1, "y")
    assert repr(one) == "Cheap(a=1, b='x', c=())"
    assert Cheap._fields == ("a", "b", "c") and Cheap.__doc__ == "What it is."
    match one:
        case Cheap(a=found, b="x"):
            assert found == 1
        case _:
            raise AssertionError
    with pytest.raises(ValueError):
        one._replace(d=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Cheap._make([1])


def test_it_equals_its_own_kind_and_plain_tuples() -> None:
    other: Any = Other(1)
    assert Cheap(1) == Cheap(1) and hash(Cheap(1)) == hash(Cheap(1))
    assert Cheap(1) != other and Cheap(1) != Cheap(2)
    assert Cheap(1) == (1, "x", ()) and Cheap(1) == (1, "x", ()) and Cheap(1) != (2, "x", ())
