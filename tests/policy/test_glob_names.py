"""A glob on names of files, and on sockets, means what it means everywhere else."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from sigwrap.policy.judge.match import BadPattern, Glob, check_glob, is_glob
from sigwrap.policy.judge.names import FileNames, SocketNames

PARTS = r"""
    a b 1 é - ! . [ ] * ? ** [a-c] [!a] []a] [0-9] [!] [b-a] [^a] [a-] [-a] [a- [\] [é]
""".split()
globs = st.lists(st.sampled_from(PARTS), max_size=7).map("".join)
names = st.text(alphabet="ab1-é]![^.\n\udc80\\", max_size=8)


@given(globs, names)
@example("*a*a*a*b", "a" * 300)
@example("pip[0-9]*", "pip3.11")
def test_it_matches_what_the_other_one_does(glob: str, name: str) -> None:
    try:
        check_glob(glob)
    except BadPattern:
        return
    if is_glob(glob):
        assert FileNames(glob).matches(name) == Glob(glob).matches(name)


@given(
    st.lists(st.sampled_from([*PARTS, "/", "/", "@"]), max_size=9).map("".join),
    st.text(alphabet="ab1/-@.\n\udc80é", max_size=10),
)
@example("/run/**", "/run/")
@example("/run/**", "/run")
@example("/run/a**", "/run/ab/c")
@example("**", "")
def test_on_sockets_too(glob: str, name: str) -> None:
    try:
        check_glob(glob)
    except BadPattern:
        return
    if is_glob(glob):
        assert SocketNames(glob).matches(name) == Glob(glob).matches(name)
