"""Words that a process chose read back from a policy as the same words, and match nothing else."""

from __future__ import annotations

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.globs import readable
from sigwrap.policy.judge.match import to_bytes
from sigwrap.policy.judge.request import CommandRequest, Program
from sigwrap.policy.language.document import MappingNode, SequenceNode, Source
from sigwrap.policy.language.yaml_text import read_document
from sigwrap.policy.tools.literal import (
    glob_of,
    stands_as_it_is,
    yaml_list,
    yaml_word,
)
from sigwrap.text import printable
from tests.policy.test_suggest import base

ODD = [
    *("", " ", "a b", " a", "a ", "\n", "a\nb", "a\n", "\r\n", "\t", "\x00", "\x1b[2J", "\x7f"),
    *("'", '"', "'\"'", "\\", "\\n", "\\\\'", "a'b\\c", '"\\"', "# a", "a #b", "a: b", "a:", ": "),
    *("~", "~/x", "~root", "yes", "No", "on", "y", "null", "true", "TRUE", "1", "010", "1e3"),
    *("-", "--", "---", "...", "- a", "? a", "!x", "!!str x", "&a", "*a", "*", "**", "?", "["),
    *("]", "[a]", "[!a]", "[]a]", "[^a]", "a[", "a]*[", "[[:alpha:]]", "{a}", "{a: b}", ",", "a,b"),
    *("0x1", "%x", "@x", "`x`", "|", ">", "<<", "=", "${HOME}", "$HOME", "$", "${", "\\${HOME}"),
    *("(?i)x", "x|y", "^x$", "x.y", "a+", "a{2}", "\\d", "\\pL", "\\Q*\\E", "é", "日本", "😀"),
    *("\u202ex", "\u00a0", "\u2028", "\x85", "\ufeff", "\ufffe", "\uffff", "\ufffd", "\U000e0100"),
    *("a\u0336", "\u3164", "\udce9", "caf\udce9", "\udce9\ud83d", "\ud83d\ude00", "\ud800x"),
    *("a" * 3_000, "é" * 1_500),
]
odd = st.sampled_from(ODD)
characters = st.characters(exclude_categories=()) | st.sampled_from("".join(ODD[:-2]))
words = odd | st.text(characters, max_size=12)
names = words.filter(lambda word: word not in ("", ".", "..") and "/" not in word)


def test_each_odd_word_reads_back_as_itself() -> None:
    for word in ODD:
        _reads_back([word])


@given(st.lists(words, min_size=1, max_size=5))
def test_yaml_reads_back_as_the_same_words(found: list[str]) -> None:
    _reads_back(found)


def _reads_back(found: list[str]) -> None:
    written = f"key: {yaml_list(found)}  # a note\nother: {{a: {yaml_word(found[0])}, b: [x]}}"
    assert printable(written.replace("\n", "")) == written.replace("\n", "")
    assert len(written.splitlines()) == 2
    read = [readable(each) for each in found]
    node = read_document(Source("x.yaml", written))
    assert isinstance(node, MappingNode)
    listed = node.entries[0][1]
    assert isinstance(listed, SequenceNode)
    assert [getattr(each, "text", None) for each in listed.items] == read
    assert [getattr(each, "value", None) for each in listed.items] == read
    # By other tools, of YAML 1.1, as well.
    assert yaml.safe_load(written) == {"key": read, "other": {"a": read[0], "b": ["x"]}}


@given(names, names)
@example("*", "x")
@example("a[", "a")
@example("[a]", "a")
@example("\x1b[2J", "x")
@example("caf\udce9", "cafe")
@example("a\nb", "a b")
@example("${HOME}", "home")
@example("~", "user")
def test_a_glob_matches_only_its_name(name: str, other: str) -> None:
    if len(glob := glob_of(name)) > 1_000:
        return
    head = "version: 1\nname: x\ndefaults: {command: deny}\ncommand_rules:\n"
    rule = f"- {{name: r, commands: {yaml_list([glob])}, decision: allow}}\n"
    engine = Engine(base(head + rule))

    def is_allowed(name: str) -> bool:
        program = Program(path=f"/opt/{name}", name=name, argv=(name,))
        return engine.decide_command(CommandRequest((program,))).rule == "r"

    assert is_allowed(name)
    for each in (other, f"{name}x", f"x{name}", name[1:] or "x", name.upper()):
        assert is_allowed(each) == (to_bytes(each) == to_bytes(name)), each


@given(names)
def test_a_plain_word_is_read_as_it_is(word: str) -> None:
    if stands_as_it_is(word):
        head = "version: 1\nname: x\ncommand_rules:\n"
        rule = f"- {{name: r, commands: [{yaml_word(word)}], decision: deny}}\n"
        [found] = base(head + rule).command_rules
        assert found.commands == (word,)
