"""A machine with little on it, as a root folder: busybox, bash, and what the one file needs. No
Python, no git, no compiler."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_APPLETS = """cat chmod cp cut dirname env false grep head id ln ls mkdir mv printf rm sed setsid
sha256sum sleep sort tail touch tr true wc wget""".split()
_ENTER = """
mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" /bin/sh -c '
cd /work && exec "$@"' sh "$@"
"""


@dataclass(frozen=True, slots=True)
class BareMachine:
    root: Path

    @classmethod
    def make(cls, root: Path, program: Path) -> BareMachine:
        """With what `program` is linked to, but without it."""
        for folder in ("bin", "dev", "proc", "root", "tmp", "work"):
            (root / folder).mkdir()
        busybox, bash = (shutil.which(name) for name in ("busybox", "bash"))
        assert busybox is not None and bash is not None
        shutil.copy(busybox, root / "bin" / "busybox")
        shutil.copy(bash, root / "bin" / "bash")
        for name in ("sh", *_APPLETS):
            (root / "bin" / name).symlink_to("busybox")
        for each in (busybox, bash, str(program)):
            for library in _libraries(each):
                there = root / library.relative_to("/")
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(library, there)
        return cls(root)

    def enter(self) -> list[str]:
        """What a command line follows that is to run there, in /work, as the same process."""
        return ["unshare", "-m", "sh", "-c", _ENTER, str(self.root)]

    def place(self, path: str) -> Path:
        return self.root / path.removeprefix("/")


def _libraries(program: str) -> list[Path]:
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    linked = [Path(path) for path in re.findall(r"(?:=> |^\t)(/\S+)", said, re.MULTILINE)]
    # What is unpacked later is linked to the C library's other half as well.
    return [*linked, *(path.with_name("libm.so.6") for path in linked if path.name == "libc.so.6")]
