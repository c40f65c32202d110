"""docs/doctor.md from the table of items: python -m sigwrap.doctor.reference > docs/doctor.md"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from sigwrap.doctor.items import ITEMS
from sigwrap.doctor.told import ALWAYS, SCHEMA

_INTRODUCTION = f"""# What a machine can do

`sigwrap doctor` tries what a run needs, by the very calls that a run makes: it starts a child under
the filter, answers it, sends it a signal, traces it, makes a log and a control group, and at last
runs `true`, whole. Versions and settings are not asked where something can be tried. Each trial is
in a process of its own, within bounded time; nothing stays behind. It is for the user, the folder,
the limits and the store that it is called with: call it as the run will be called.

```
sigwrap doctor
sigwrap doctor --json
```

| level | meaning | exit status |
| --- | --- | --- |
| ok | it is there | 0 |
| note | a run is whole without it: it is slower, or something beside it is missing | 0 |
| less | a run works, and does not hold everything; its log says so under `missing` | 1 |
| ? | it can't be told here: something else is in the way | 1 |
| no | a run is refused, or its command denied, with the line that `a run says` shows | 125 |

The worst one decides. A script that is content with less asks for `[ $? -le 1 ]`.

{ALWAYS}

Inside a session it says that it is inside, and what can't be told from there. A start that is
refused because of the machine names `sigwrap doctor` in its line. Where the one-file binary can't
even unpack itself, its doctor doesn't start either: the line is the bootloader's
([README](../README.md#install)). It needs two processes more than a run, and more
memory: where that isn't there, it says so, as a run does that can't be loaded.

With `--json`: `schema` (`{SCHEMA}`), `sigwrap`, `kernel`, `architecture`, `user`, `status`,
`verdict`, `always`, and `items`, each with `item`, `level` (`ok`, `note`, `less`, `no`, `unknown`),
`found`, and, where it falls short, `shortfall`, `lost`, `to_do` and `a_run_says`; else these are
null.

## What is tried
"""

_SHORT = """
## What is lost, and what to do
"""


def reference() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    yield "| item | how |"
    yield "| --- | --- |"
    for item in ITEMS:
        yield f"| {item.name} | {item.tried} |"
    yield _SHORT
    yield "| item | where | level | lost | to do |"
    yield "| --- | --- | --- | --- | --- |"
    for item in ITEMS:
        for each in item.shortfalls.values():
            cells = (item.name, each.when, each.level.value, each.lost, each.todo)
            yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.stdout.write(reference())
