"""A shipped policy as it was checked when sigwrap was built: no run reads and checks its text.

policy/tools/shipped.py writes the forms. A value that marshal cannot hold is a tuple that begins
with None and a type's name. A text with variables is one too, and is filled in here.
"""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Callable, Mapping

from sigwrap.bare import Any
from sigwrap.policy.judge.request import Action, CommandRedirect, Operation, TargetType, Via
from sigwrap.policy.judge.rules import (
    CommandRule,
    Depth,
    FileRule,
    LoopWatch,
    NetworkRule,
    PidRange,
    ProcessPattern,
    SignalRule,
)
from sigwrap.policy.language.document import (
    NetworkDefault,
    Parts,
    ScalarNode,
    ShippedForm,
    Source,
    digest_of,
    form_of_shipped,
)
from sigwrap.policy.language.fill import FILLED, Filler, Wrong
from sigwrap.policy.problems import Place

TEXT = "text"
_TYPES: Mapping[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        *(Action, CommandRedirect, CommandRule, Depth, FileRule, LoopWatch, NetworkDefault),
        *(NetworkRule, Operation, Parts, PidRange, ProcessPattern, SignalRule, TargetType, Via),
    )
}


def form_of(source: Source) -> ShippedForm | None:
    """Return None for a text that is not the one that was checked."""
    if not (source.shipped and source.for_a_run):
        return None
    form = form_of_shipped(source.name)
    return form if (source.digest or digest_of(source.text)) == form.digest else None


def parts(form: ShippedForm, file: str, filler: Filler) -> Parts:
    read: Parts = _Reader(file, filler).value(marshal.loads(zlib.decompress(form.parts)))
    return read


class _Reader:
    def __init__(self, file: str, filler: Filler) -> None:
        self._file = file
        self._filler = filler
        self._types: dict[str, Callable[..., Any]] = {
            **_TYPES,
            "Place": lambda line, column: Place(file, line, column),
            "tuple": lambda *items: items,
            "dict": lambda *items: dict(items),
            TEXT: self._filled,
        }

    def value(self, form: tuple[Any, ...]) -> Any:
        return self._types[form[1]](
            *[
                self.value(each) if type(each) is tuple and each and each[0] is None else each
                for each in form[2:]
            ]
        )

    def _filled(self, kind: str, name: str, text: str, line: int, column: int) -> str:
        node = ScalarNode(Place(self._file, line, column), text, text)
        try:
            return FILLED[kind](self._filler, node, text, name)
        except Wrong:
            return ""  # its problem was noted
