"""Which files a command's arguments mean."""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.paths import arguments_as_paths, resolved


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/etc", "/etc"),
        ("//etc//", "/etc"),
        ("/etc/../etc/.", "/etc"),
        ("/..", "/"),
        ("x", "/work/p/x"),
        ("../../etc", "/etc"),
        ("~", "/home/user"),
        ("~/x", "/home/user/x"),
        ("~other", "/work/p/~other"),
        ("/proc/self/root/etc", "/etc"),
        ("/proc/thread-self/root", "/"),
        ("/proc/12/task/13/root/etc", "/etc"),
        ("/proc/self/root/proc/1/root/etc", "/etc"),
        ("/proc/self/root/../etc", "/etc"),
        ("/proc/self/cwd/x", "/work/p/x"),
        ("/proc/net/root", "/proc/net/root"),
        ("/proc/self/task/root", "/proc/self/task/root"),
        ("/proc/root", "/proc/root"),
        ("/etc/*", "/etc"),
        ("/etc/.*", "/etc"),
        ("/etc/**", "/etc"),
        ("/etc/*.conf", "/etc/*.conf"),
    ],
)
def test_one_file_has_many_spellings(text: str, path: str) -> None:
    assert resolved(text, "/work/p", "/home/user") == path


def test_a_relative_path_means_nothing_where_the_folder_is_not_known() -> None:
    assert resolved("x", "", "/home/user") == ""
    assert resolved("/x", "", "/home/user") == "/x"
    assert arguments_as_paths("rm", ["rm", "x", "/y"], "", "") == {"/y"}


def _paths(line: str, *, sources_only: bool = False) -> frozenset[str]:
    argv = line.split(" ")
    return arguments_as_paths(argv[0], argv, "/w", "/h", sources_only=sources_only)


def test_what_follows_an_equals_sign_is_a_path_too() -> None:
    assert {"/x", "/w/of=/x"} == _paths("dd of=/x")
    assert "/y" in _paths("cp --target-directory=/y x")


def test_what_dd_reads_is_not_written() -> None:
    assert _paths("dd if=/x of=/y") == {"/y", "/w/of=/y"}


@pytest.mark.parametrize("line", ["find", "find -delete", "find ( -name x )", "find ! -name x"])
def test_find_without_a_path_starts_here(line: str) -> None:
    assert "/w" in _paths(line)


def test_find_with_a_path_does_not() -> None:
    assert "/w" not in _paths("find /x -delete")


@pytest.mark.parametrize(
    "line",
    [
        "mv /a /b /to",
        "mv -t /to /a /b",
        "mv /a /b -t /to",
        "mv -vt /to /a /b",
        "mv -t/to /a /b",
        "mv --target-directory=/to /a /b",
        "mv --target-directory /to /a /b",
        "mv --targ=/to /a /b",
    ],
)
def test_where_to_is_not_a_source(line: str) -> None:
    found = _paths(line, sources_only=True)
    assert {"/a", "/b"} <= found and "/to" not in found


def test_a_hostile_list_of_arguments_is_bounded() -> None:
    assert len(arguments_as_paths("rm", ["rm", *map(str, range(9000))], "/", "")) == 4096
    assert arguments_as_paths("rm", ["rm", "x" * 5000, ""], "/", "") == frozenset()
