"""What file rules say of a path. The sandbox rules made of them allow that, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwrap.policy.judge.files import IN_A_FOLDER, FileRules, SandboxRule
from sigwrap.policy.judge.request import Action, Decision, Operation
from sigwrap.policy.judge.rules import FileRule
from sigwrap.policy.problems import Place

NAMES = ["a", "b", "ab"]
PARTS = [*NAMES, "*", "a*", "?", "[ab]"]
Tree = dict[str, "Tree | None"]

trees: st.SearchStrategy[Tree] = st.recursive(
    st.just({}),
    lambda inner: st.dictionaries(st.sampled_from(NAMES), st.none() | inner, max_size=3),
    max_leaves=8,
)
patterns = st.builds(
    lambda parts, beneath: "/" + "/".join([*parts, *["**"] * beneath]),
    st.lists(st.sampled_from(PARTS), min_size=0, max_size=3),
    st.booleans(),
)
rules = st.builds(
    lambda paths, operations, action: rule(*paths, operations=operations, action=action),
    st.lists(patterns, min_size=1, max_size=2),
    st.sets(st.sampled_from(list(Operation)), min_size=1),
    st.sampled_from([Action.ALLOW, Action.DENY, Action.AUDIT]),
)
paths = st.lists(st.sampled_from(NAMES), max_size=4).map(lambda parts: "/" + "/".join(parts))


def rule(*paths: str, operations: Iterable[Operation] = Operation, action: Action) -> FileRule:
    return FileRule(Place("p.yaml", 1, 1), "r", action, paths, tuple(operations))


def files_of(listed: Sequence[FileRule], default: Action) -> FileRules:
    return FileRules(listed, Decision(default, "builtin:default", ""))


def listing(tree: Tree, folder: str) -> list[tuple[str, bool]] | None:
    here: Tree | None = tree
    for name in filter(None, folder.split("/")):
        here = None if here is None else here.get(name)
    return None if here is None else [(name, each is not None) for name, each in here.items()]


def sandbox_rules(files: FileRules, tree: Tree) -> list[SandboxRule]:
    return list(files.sandbox_rules(lambda folder: listing(tree, folder)))


def held(files: FileRules, made: list[SandboxRule], operation: Operation, path: str) -> bool:
    """As the kernel holds it: by the path itself or what is above it."""
    if operation is Operation.EXECUTE and not held(files, made, Operation.READ, path):
        return False
    if operation not in files.restricted:
        return True
    asked = path.rpartition("/")[0] if operation in IN_A_FOLDER else path
    return any(
        operation in rule.operations and f"{asked}/".startswith(f"{rule.path.rstrip('/')}/")
        for rule in made
    )


def allows(files: FileRules, operation: Operation, path: str) -> bool:
    return files.decide(operation, path).action is not Action.DENY


def can_be(tree: Tree, path: str) -> bool:
    """Nothing is beneath a file."""
    here: Tree | None = tree
    for name in filter(None, path.split("/")):
        if here is None:
            return False
        here = here.get(name, {})
    return True


def every(tree: Tree, above: str = "") -> Iterable[str]:
    for name, inner in tree.items():
        yield f"{above}/{name}"
        yield from every(inner or {}, f"{above}/{name}")


@given(st.lists(rules, max_size=4), st.sampled_from([Action.ALLOW, Action.DENY]), trees, paths)
def test_walls_allow_what_the_rules_do_of_what_is_there_and_nothing_that_they_deny(
    listed: list[FileRule], default: Action, tree: Tree, later: str
) -> None:
    files = files_of(listed, default)
    made = sandbox_rules(files, tree)
    for path in every(tree):  # of a folder, rules are about what is in it
        for operation in IN_A_FOLDER if listing(tree, path) is not None else Operation:
            assert held(files, made, operation, path) == allows(files, operation, path)
    if can_be(tree, later) and listing(tree, later) is None:
        for operation in Operation:
            if held(files, made, operation, later):
                assert allows(files, operation, later)


@given(st.lists(rules, max_size=4), st.sampled_from([Action.ALLOW, Action.DENY]), trees)
def test_what_a_folder_allows_by_any_name_it_allows_later(
    listed: list[FileRule], default: Action, tree: Tree
) -> None:
    files = files_of(listed, default)
    made = sandbox_rules(files, tree)
    for folder in ("", *(path for path in every(tree) if listing(tree, path) is not None)):
        for operation in set(Operation) - {Operation.CREATE, Operation.EXECUTE}:
            if files.holds_for_all(operation, folder):
                assert held(files, made, operation, f"{folder}/new")
        if files.holds_for_all(Operation.CREATE, folder):
            assert held(files, made, Operation.CREATE, f"{folder}/new")


@given(st.lists(rules, max_size=4), st.sampled_from([Action.ALLOW, Action.DENY]), trees)
def test_what_is_made_can_be_dealt_with(
    listed: list[FileRule], default: Action, tree: Tree
) -> None:
    files = files_of(listed, default)
    made = sandbox_rules(files, tree)
    for folder in (path for path in every(tree) if listing(tree, path) is not None):
        new = f"{folder}/new"
        if held(files, made, Operation.CREATE, new) and Operation.CREATE in files.restricted:
            for operation in (Operation.READ, Operation.WRITE, Operation.EXECUTE):
                assert held(files, made, operation, new) == allows(files, operation, new)


@pytest.mark.parametrize(
    ("pattern", "matched", "not_matched"),
    [
        ("/a", ["/a", "/a/b", "/a/b/c"], ["/", "/b", "/b/a", "/ab"]),
        ("/a/**", ["/a", "/a/b", "/a/b/c"], ["/", "/b/a"]),
        ("/a/*", ["/a/b", "/a/b/c"], ["/a", "/b/a"]),
        ("/*/b", ["/a/b", "/a/b/c"], ["/b", "/a/c"]),
        ("/**", ["/", "/a", "/a/b"], []),
    ],
)
def test_a_pattern(pattern: str, matched: list[str], not_matched: list[str]) -> None:
    files = files_of([rule(pattern, action=Action.DENY)], Action.ALLOW)
    for path in (*matched, *not_matched):
        assert allows(files, Operation.READ, path) == (path in not_matched)


def test_a_denial_beneath_what_is_allowed_is_made_of_its_siblings() -> None:
    tree: Tree = {"home": {"me": {".ssh": {"id": None}, "work": {}, "notes": None}}, "usr": {}}
    files = files_of(
        [rule("/home/me/.ssh/**", operations=[Operation.READ], action=Action.DENY)], Action.ALLOW
    )
    create, read = Operation.CREATE, Operation.READ
    assert sorted(sandbox_rules(files, tree)) == [
        SandboxRule("/home/me/.ssh", frozenset({create})),
        SandboxRule("/home/me/notes", frozenset({read})),
        SandboxRule("/home/me/work", frozenset({create, read})),
        SandboxRule("/usr", frozenset({create, read})),
    ]


def test_what_is_allowed_everywhere_takes_no_sandbox_rule() -> None:
    denial = rule("/a", operations=[Operation.WRITE], action=Action.DENY)
    assert files_of([denial], Action.ALLOW).restricted == {
        Operation.WRITE,
        Operation.CREATE,  # in the folder that has /a, what is made couldn't be written
    }
    everything = rule("/**", action=Action.ALLOW)
    assert not files_of([everything, denial], Action.DENY).restricted
