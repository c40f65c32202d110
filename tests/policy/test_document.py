"""YAML, and only as much of it as a policy needs."""

from __future__ import annotations

import pytest

from sigwrap.policy.language.document import (
    MAX_NESTING,
    MAX_NODES,
    MAX_TEXT_CHARACTERS,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    Source,
)
from sigwrap.policy.language.yaml_text import read_document
from sigwrap.policy.problems import InvalidPolicy


def read(text: str) -> Node:
    return read_document(Source(name="p.yaml", text=text))


def plain(node: Node) -> object:
    match node:
        case ScalarNode():
            return node.value
        case SequenceNode():
            return list(map(plain, node.items))
        case MappingNode():
            return {name.text: plain(value) for name, value in node.entries}


def problem_with(text: str) -> str:
    with pytest.raises(InvalidPolicy) as caught:
        read(text)
    (problem,) = caught.value.problems
    return str(problem).removeprefix("p.yaml:")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: true\n", {"a": True}),
        ("a: null\n", {"a": None}),
        ("a: ~\n", {"a": None}),
        ("a:\n", {"a": None}),
        ("a: 'true'\n", {"a": "true"}),
        ("a: 10\n", {"a": 10}),
        ("a: -1\n", {"a": -1}),
        # What YAML 1.1 has more of is a text here
        ("a: yes\n", {"a": "yes"}),
        ("a: 010\n", {"a": "010"}),
        ("a: 1.5\n", {"a": "1.5"}),
        ("a: ! 5\n", {"a": 5}),
        ("- a\n- [b, {c: d}]\n", ["a", ["b", {"c": "d"}]]),
        ("a: &x [b]\nc: *x\n", {"a": ["b"], "c": ["b"]}),
    ],
)
def test_what_a_text_says(text: str, value: object) -> None:
    assert plain(read(text)) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1:1: the policy is empty"),
        ("a: b: c\n", "1:5: not valid YAML: mapping values are not allowed in this context"),
        ("a: \udce9\n", "1:1: not valid YAML: it contains lone surrogates"),
        ("a: 'b\n", "2:1: not valid YAML: found unexpected end of stream"),
        ("? [a]\n: b\n", "1:3: a key must be text"),
        ("a: b\n---\nc: d\n", "2:1: a policy must be a single YAML document"),
        ("a: *b\n", '1:4: unknown alias "b"'),
        ("a: &b [*b]\n", '1:8: unknown alias "b"'),
        (
            "a: !!python/name:os.system b\n",
            '1:4: YAML tags are not supported: "tag:yaml.org,2002:python/name:os.system"',
        ),
        ("a: " + "[" * (MAX_NESTING + 1), f"1:19: nested deeper than {MAX_NESTING} levels"),
        (
            "a" * (MAX_TEXT_CHARACTERS + 1),
            f"1:1: the policy is longer than {MAX_TEXT_CHARACTERS} characters",
        ),
    ],
)
def test_what_is_no_document(text: str, said: str) -> None:
    assert problem_with(text) == said


def test_what_is_nested_without_end_is_refused_by_whoever_sees_it_first() -> None:
    said = problem_with("a: " + "[" * 100_000)
    by_libyaml = "1:1003: not valid YAML: exceeded maximum nesting depth"
    assert said in (f"1:19: nested deeper than {MAX_NESTING} levels", by_libyaml)


def test_a_character_that_yaml_has_not_is_refused_on_one_line() -> None:
    said = problem_with("a: \x00\n")
    assert said.startswith("1:1: not valid YAML: ") and "\n" not in said


def test_what_is_just_within_bounds_is_read() -> None:
    depth = MAX_NESTING - 1
    assert plain(read("a: " + "[" * depth + "]" * depth)) is not None
    longest = "a: " + "b" * (MAX_TEXT_CHARACTERS - 3)
    assert len(longest) == MAX_TEXT_CHARACTERS
    assert read(longest)


def test_siblings_are_no_deeper_than_one_another() -> None:
    assert plain(read("[" + "[], {}, " * 50 + "]")) == [[], {}] * 50


def test_values_are_counted_with_their_aliases_expanded() -> None:
    half = f"[{'x, ' * (MAX_NODES // 2 - 2)}]"
    assert read(f"[&a {half}, *a, y]").size == MAX_NODES
    assert "aliases expanded" in problem_with(f"[&a {half}, *a, y, z]")
    assert read("{a: b, c: [d]}").size == 6


def test_aliases_of_aliases_cannot_multiply_without_bound() -> None:
    laughs = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{below}'] * 10)}]\n"
        for below, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert "aliases expanded" in problem_with(laughs)
