"""The example in docs/agent-signals.md prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "agent-signals.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_document_says() -> None:
    ((program, output),) = re.findall(
        r"^```python\n(.*?)^```\n\nIt prints:\n\n```\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL
    )
    line = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(line, capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == (output, "", 0)
