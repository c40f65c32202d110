"""Folders that a policy wants to be there, as caches: a rule on files holds what is there when
COMMAND starts, and whoever looks for a cache that he may not make fails."""

from __future__ import annotations

import os
from collections.abc import Iterator

from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.files import BENEATH, FileRules
from sigwrap.policy.judge.globs import is_glob
from sigwrap.policy.judge.request import Operation

_FOR_ITS_OWNER = 0o700


def make_missing(engine: Engine) -> list[str]:
    """Those that were made, each after the one that it is in. Only beneath a folder of our own, and
    where COMMAND can't make them itself."""
    made: list[str] = []
    for rule in engine.policy.file_rules:
        for path in rule.paths if rule.make_missing else ():
            folder = path.removesuffix(f"/{BENEATH}")
            if not is_glob(folder) and not os.path.lexists(folder):
                made += _make(folder, engine.files)
    return made


def remove_unused(made: list[str]) -> None:
    for folder in reversed(made):
        try:
            os.rmdir(folder)
        except OSError:
            pass  # it was used, or is gone


def _make(folder: str, files: FileRules) -> Iterator[str]:
    missing: list[str] = []
    if not folder.startswith("/"):
        return
    try:
        while not os.path.lexists(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        if (
            folder == "/"
            or files.holds_for_all(Operation.CREATE, folder)
            or os.stat(folder).st_uid != os.geteuid()
        ):
            return
        for each in reversed(missing):
            os.mkdir(each, _FOR_ITS_OWNER)
            yield each
    except OSError:
        return  # COMMAND will be told, should it need it
