"""Write a policy's old keys in the new way, and leave every other byte as it is."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from sigwrap.bare import Any, NamedTuple

_RULES = ("command_rules", "signal_rules")


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


def with_new_keys(text: str) -> str:
    """Return a policy's text with each old key replaced; `text` is a policy that loads."""
    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    edits = {*_renamed(root), *_in_rules(root), *_boundary(root, text)}
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _renamed(root: yaml.Node) -> Iterator[_Edit]:
    for old, new in (("unenforced", "fallback"), ("watch", "on")):
        key, _ = _entry(root, old)
        if key is not None:
            yield _replacing(key, new)


def _in_rules(root: yaml.Node) -> Iterator[_Edit]:
    for section in _RULES:
        _, rules = _entry(root, section)
        for rule in rules.value if isinstance(rules, yaml.SequenceNode) else ():
            key, value = _entry(rule, "escalate")
            if key is not None:
                yield _replacing(key, "on")
                yield _replacing(value, "kill")
            _, signal = _entry(rule, "redirect_to")
            if isinstance(signal, yaml.ScalarNode):
                yield _Edit(signal.start_mark.index, signal.start_mark.index, "{signal: ")
                yield _Edit(signal.end_mark.index, signal.end_mark.index, "}")


def _boundary(root: yaml.Node, text: str) -> Iterator[_Edit]:
    """Move `boundary` from `trust` to `on`."""
    trust_key, trust = _entry(root, "trust")
    key, value = _entry(trust, "boundary")
    if key is None:
        return
    on = _entry(root, "on")[1] or _entry(root, "watch")[1]
    is_alone = len(trust.value) == 1
    if is_alone and on is None:
        yield _replacing(trust_key, "on")
        return
    end = text.find("\n", value.end_mark.index)
    entry = f"boundary: {value.value}"
    if not (trust.flow_style or (on is not None and on.flow_style)):
        entry = text[key.start_mark.index : end if end > 0 else None].rstrip()  # with its comment
    yield _without(root, trust_key, trust, text) if is_alone else _without(trust, key, value, text)
    if on is None:
        between = "\n" if text.endswith("\n") else "\n\n"
        new = f"on: {{{entry}}}" if trust.flow_style else f"on:\n  {entry}"
        yield _Edit(len(text), len(text), between + new + "\n")
    else:
        start = on.value[0][0].start_mark
        between = ", " if on.flow_style else "\n" + " " * start.column
        yield _Edit(start.index, start.index, entry + between)


def _without(mapping: Any, key: yaml.Node, value: yaml.Node, text: str) -> _Edit:
    """Take an entry out of a mapping: its lines, or what stands up to the next comma."""
    start, end = key.start_mark.index, value.end_mark.index
    if not mapping.flow_style:
        last = end if value.end_mark.column == 0 else text.find("\n", end) + 1
        return _Edit(start - key.start_mark.column, last or len(text), "")
    keys = [each for each, _ in mapping.value]
    at = keys.index(key)
    if at + 1 < len(keys):
        return _Edit(start, keys[at + 1].start_mark.index, "")
    return _Edit(mapping.value[at - 1][1].end_mark.index, end, "")


def _entry(mapping: Any, name: str) -> tuple[Any, Any]:
    entries = mapping.value if isinstance(mapping, yaml.MappingNode) else ()
    return next((each for each in entries if each[0].value == name), (None, None))


def _replacing(node: yaml.Node, text: str) -> _Edit:
    return _Edit(node.start_mark.index, node.end_mark.index, text)
