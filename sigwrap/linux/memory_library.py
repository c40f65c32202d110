"""Extension modules that are loaded from memory, so that a change of their files has no effect."""

from __future__ import annotations

import ctypes
import fcntl
import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import ExtensionFileLoader, PathFinder
from collections.abc import Callable

from sigwrap.bare import Any, TypeVar
from sigwrap.linux import proc_files
from sigwrap.linux.libc import libc

# The extension modules outside the interpreter: what they are loaded from may be a user's file.
_MODULES = frozenset({"re2._re2", "sigwrap.linux.execs._repeated", "yaml._yaml"})
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
_FILE_SYSTEM = 0x200  # CLONE_FS: the working directory of a thread
_PERTURB = -6  # M_PERTURB: malloc fills what it returns with the complement of this byte

T = TypeVar("T")


def sealed(name: str, data: bytes) -> int:
    """Return a new memory file with this content, which no process can change.

    Its number is above those of the standard streams, even if one of them is closed.
    """
    new = os.memfd_create(os.path.basename(name), os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        fd = fcntl.fcntl(new, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(new)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
    return fd


def with_path(fd: int, load: Callable[[str], T]) -> T:
    """Call `load` with a path of the memory file.

    Root in a session can mount something over /proc; then the path starts from our own /proc.
    """
    if not proc_files.is_ours():
        return load(f"/proc/self/fd/{fd}")
    if libc.unshare(_FILE_SYSTEM) != 0:
        raise ImportError("this thread cannot have its own working directory")
    here = os.open(".", os.O_PATH | os.O_CLOEXEC)
    os.chdir(proc_files.held()[0])
    _fill_allocated_memory(0)
    try:
        return load(f"./self/fd/{fd}")
    finally:
        _fill_allocated_memory(None)
        os.chdir(here)
        os.close(here)


def _fill_allocated_memory(byte: int | None) -> None:
    """Make malloc fill memory with `byte`, or stop it.

    glibc 2.41 deadlocks without: where the working directory has no path, it takes a lock that it
    has allocated and not initialized.
    """
    mallopt = getattr(libc, "mallopt", None)
    if mallopt is not None:
        mallopt(_PERTURB, 0 if byte is None else byte ^ 0xFF)


def load_library(fd: int) -> None:
    """Load a library that others need: the linker finds it by the name in its header."""
    with_path(fd, ctypes.CDLL)


def create_module(spec: ModuleSpec, fd: int) -> Any:
    origin = spec.origin

    def load(path: str) -> Any:
        spec.origin = path
        return ExtensionFileLoader(spec.name, path).create_module(spec)

    try:
        return with_path(fd, load)
    finally:
        spec.origin = origin


class MemoryLoader(ExtensionFileLoader):
    def __init__(self, name: str, path: str, data: bytes) -> None:
        super().__init__(name, path)
        self._fd = sealed(name, data)  # stays open: glibc knows a library by its path

    def create_module(self, spec: ModuleSpec) -> Any:
        try:
            module = create_module(spec, self._fd)
        except ImportError:
            if _Finder not in sys.meta_path:  # the command runs, and may have changed the file
                raise
            return super().create_module(spec)
        module.__file__ = self.path
        return module


class _Finder:
    @staticmethod
    def find_spec(name: str, path: Any = None, _: object = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name in _MODULES else None
        loader = spec and spec.loader
        if spec is None or not isinstance(loader, ExtensionFileLoader):
            return None
        try:
            with open(loader.path, "rb") as file:
                spec.loader = MemoryLoader(name, loader.path, file.read())
        except OSError:
            pass  # a container forbids memfd_create; own_files.changeable names the file
        return spec


def load_modules_from_memory() -> None:
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
