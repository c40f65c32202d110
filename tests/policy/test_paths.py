"""Which files a command's arguments mean."""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.match import (
    UNTOLD,
    Paths,
    arguments_as_paths,
    parts_of,
    resolved,
)


def resolved_in(text: str, folder: str) -> str:
    return resolved(text, parts_of(folder), "/home/user")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/etc", "/etc"),
        ("/etc/../etc/.", "/etc"),
        ("/..", "/"),
        ("x", "/project/app/x"),
        ("../../etc", "/etc"),
        ("~", "/home/user"),
        ("~/x", "/home/user/x"),
        ("~other", "/project/app/~other"),
        ("/proc/thread-self/root", "/"),
        ("/proc/self/root/proc/1/root/etc", "/etc"),
        ("/proc/net/root", "/proc/net/root"),
        ("/proc/self/task/root", "/proc/self/task/root"),
        ("/proc/root", "/proc/root"),
        ("/etc/**", "/etc"),
        ("/etc/*.conf", "/etc/*.conf"),
    ],
)
def test_one_file_has_many_spellings(text: str, path: str) -> None:
    assert resolved_in(text, "/project/app") == path


def test_of_a_folder_that_is_not_known_only_its_inside_is_told() -> None:
    assert resolved_in("/x", "") == "/x"
    assert resolved_in("x/../y", "") == f"{UNTOLD}/y"
    assert resolved_in(".", "") == f"{UNTOLD}/"
    for leaves in ("..", "../x", "x/../../y", "/proc/self/cwd/../x"):
        assert resolved_in(leaves, "") == UNTOLD
    assert arguments_as_paths("paths", "rm", ["rm", "../x", "/y"], "", "") == {UNTOLD, "/y"}


def test_a_name_is_taken_for_what_it_is() -> None:
    assert resolved_in("../x", "/a/.../b") == "/a/.../x"


@pytest.mark.parametrize(
    ("pattern", "word", "may_match"),
    [
        ("/etc", "../x", True),  # anywhere
        ("/etc", "x", False),
        ("/home/**", "x", True),
    ],
)
def test_what_may_be_meant_from_a_folder_that_is_not_known(
    pattern: str, word: str, *, may_match: bool
) -> None:
    found = arguments_as_paths("paths", "rm", ["rm", word], "", "/h")
    assert Paths([pattern]).may_match(found) is may_match
    assert not Paths([pattern]).match(found)


@pytest.mark.parametrize(
    ("pattern", "word", "may_match"),
    [
        ("/a/b/**", "x", True),
        ("/**/x", "x", True),
        ("/[!x]", "x", True),
        ("/a/b/*/*/x", "x", True),
        ("/a/b/*/*/x", ".", False),
        ("/a/b/*", "x", False),
        ("/a/b", "x", False),
        ("/a/b", "../..", True),
        ("/a/*", "../../../y", True),
        ("/dev/**", "../../x", False),
    ],
)
def test_what_may_be_meant_where_a_part_of_the_path_is_not_told(
    pattern: str, word: str, *, may_match: bool
) -> None:
    found = arguments_as_paths("paths", "rm", ["rm", f"{UNTOLD}/{UNTOLD}/{word}"], "/a/b", "/h")
    assert Paths([pattern]).may_match(found) is may_match
    assert Paths([pattern]).match(found) is (may_match and not any(UNTOLD in x for x in found))


def _paths(line: str, condition: str = "paths") -> frozenset[str]:
    argv = line.split(" ")
    return arguments_as_paths(condition, argv[0], argv, "/w", "/h")


@pytest.mark.parametrize("line", ["find", "find -delete", "find ( -name x )", "find ! -name x"])
def test_find_without_a_path_starts_here(line: str) -> None:
    assert "/w" in _paths(line)


@pytest.mark.parametrize(
    "line",
    [
        "mv /a /b /to",
        "mv /a /b -t /to",
        "mv -vt /to /a /b",
        "mv -t/to /a /b",
        "mv --target-directory /to /a /b",
        "mv --targ=/to /a /b",
    ],
)
def test_where_to_is_not_a_source(line: str) -> None:
    found = _paths(line, "sources")
    assert {"/a", "/b"} <= found and "/to" not in found


def test_a_hostile_list_of_arguments_is_bounded() -> None:
    assert len(arguments_as_paths("paths", "rm", ["rm", *map(str, range(9000))], "/", "")) == 4096
    assert arguments_as_paths("paths", "rm", ["rm", "x" * 5000, ""], "/", "") == frozenset()


@pytest.mark.parametrize(
    ("line", "means"),
    [
        ("rm -rf build ./x", {"/w/build", "/w/x"}),
        ("rm -rf", set()),
        ("rm -rf - -- -x --y=/z", {"/w/-", "/w/-x", "/w/--y=/z", "/z"}),
        ("cp --target-directory=/etc a", {"/etc", "/w/a"}),
        ("cp -t/etc a", {"/etc", "/w/a"}),
        ("cp -atsrc a", {"/w/src", "/w/a"}),
        ("cp -tsrc=x a", {"/w/src=x", "/w/x", "/w/a"}),
        ("odd -I/etc --x/y", {"/etc", "/y"}),
        ("odd -C.. -la", {"/"}),
        ("dd of=../x", {"/w/of=../x", "/x"}),
    ],
)
def test_options_without_a_value_are_no_paths_that_can_be_outside(
    line: str, means: set[str]
) -> None:
    assert _paths(line, "outside") == {resolved(each, parts_of("/w"), "/h") for each in means}
