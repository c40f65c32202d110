from __future__ import annotations

import pytest

from sigwrap.policy.language.variables import UnknownVariable, substitute

VALUES = {"HOME": "/home/a+b", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "substituted"),
    [
        ("no variable", "no variable"),
        ("$HOME {HOME}", "$HOME {HOME}"),
        ("${HOME}", "/home/a+b"),
        ("a${HOME}b${HOME}", "a/home/a+bb/home/a+b"),
        ("${EMPTY}", ""),
        ("${EMPTY:-x}", "x"),
        ("${EMPTY:-}", ""),
        ("${UNSET:-a b}", "a b"),
        ("${UNSET:-}", ""),
        ("${HOME:-x}", "/home/a+b"),
    ],
)
def test_what_a_text_becomes(text: str, substituted: str) -> None:
    assert substitute(text, VALUES) == substituted


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("${UNSET}", "UNSET"),
        ("${", ""),
        ("${}", ""),
        ("${1A}", "1A"),
        ("${HOME", "HOME"),
        ("${SIGWRAP_HOST:TOKEN}", "SIGWRAP_HOST"),
    ],
)
def test_what_has_no_value_is_named(reference: str, name: str) -> None:
    with pytest.raises(UnknownVariable) as caught:
        substitute(f"x {reference}", VALUES)
    assert (caught.value.reference, caught.value.name) == (reference, name)


def test_a_value_is_escaped_and_a_default_is_not() -> None:
    text = substitute("${HOME} ${UNSET:-a+b}", VALUES, escape=lambda value: f"<{value}>")
    assert text == "</home/a+b> a+b"


def test_the_hosts_values_stay_names_where_they_are_allowed() -> None:
    text = substitute("${HOME} ${SIGWRAP_HOST:TOKEN}", VALUES, host_allowed=True)
    assert text == "/home/a+b ${SIGWRAP_HOST:TOKEN}"
    with pytest.raises(UnknownVariable):
        substitute("${SIGWRAP_HOST:}", VALUES, host_allowed=True)
