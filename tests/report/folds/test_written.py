"""What was written, by folder: thousands of files in some lines, in bounded memory."""

from __future__ import annotations

from sigwrap.report.folds.written import WRITTEN_SHOWN, Written, WrittenFold


def fold(*changes: tuple[str, str]) -> WrittenFold:
    made = WrittenFold()
    for operation, path in changes:
        made.add({"operation": operation, "path": path})
    return made


def test_each_folder_has_its_counts_and_the_largest_comes_first() -> None:
    made = fold(("create", "/a/x"), ("write", "/a/x"), ("delete", "/b/y"), ("create", "/top"))
    made.add({"operation": "rename", "path": "/a/x", "to": "/b/z", "count": 4})
    made.add({"operation": "unseen", "path": ""})
    made.add({"operation": 7, "path": None})
    assert made.result() == (
        Written(folder="/b", beneath=False, counts={"rename": 4, "delete": 1}),
        Written(folder="/a", beneath=False, counts={"create": 1, "write": 1}),
        Written(folder="/", beneath=False, counts={"create": 1}),
    )
    assert made.changes == {"create": 2, "write": 1, "delete": 1, "rename": 4, "unseen": 2}


def test_a_folder_of_many_is_one_line_and_others_keep_theirs() -> None:
    packages = [("create", f"/p/node_modules/{n}/lib/f") for n in range(500)]
    made = fold(*packages, ("create", "/p/node_modules/1"), ("write", "/p/package-lock.json"))
    assert made.result() == (
        Written(folder="/p/node_modules", beneath=True, counts={"create": 501}),
        Written(folder="/p", beneath=False, counts={"write": 1}),
    )


def test_memory_and_lines_are_bounded_and_nothing_is_lost() -> None:
    made = WrittenFold()
    for n in range(20_000):
        made.add({"operation": "create", "path": f"/{n % 7}/{n % 300}/{n}/{n}/f"})
    assert len(made._folders) <= 1_000
    found = made.result()
    assert len(found) <= WRITTEN_SHOWN
    assert sum(each.total for each in found) == made.changes["create"] == 20_000


def test_names_without_end_are_one_line() -> None:
    made = fold(*(("create", f"/{n}/f") for n in range(5_000)))
    assert made.result() == (Written(folder="/", beneath=True, counts={"create": 5_000}),)
