"""Load sigwrap's code before the command starts, so the command cannot change it.

Modules that most runs never use are only read by then, and imported from memory on first use.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import sys
from _frozen_importlib import (  # type: ignore[attr-defined]  # importlib would import warnings
    BuiltinImporter,
    FrozenImporter,
    ModuleSpec,
    _find_spec,
)
from _frozen_importlib_external import ExtensionFileLoader, PathFinder

from sigwrap.bare import IO, Any
from sigwrap.quick_import import code_of, read_bytecode

# The extension modules outside the interpreter: what they are loaded from may be a user's file.
_MODULES = frozenset({"re2._re2", "sigwrap.exec._repeated", "yaml._yaml"})
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
_COPIED_AT_ONCE = 1 << 24


def sealed(name: str, data: bytes | IO[bytes]) -> int:
    """Return a new memory file with this content, or that of a file; no process can change it.

    Its number is above those of the standard streams, even if one of them is closed.
    """
    new = os.memfd_create(os.path.basename(name), os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        fd = fcntl.fcntl(new, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(new)
    if isinstance(data, bytes):
        with open(fd, "wb", closefd=False) as file:
            file.write(data)
    else:
        while os.sendfile(fd, data.fileno(), None, _COPIED_AT_ONCE):
            continue
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
    return fd


def load_library(fd: int) -> None:
    """Load a library that others need: the linker finds it by the name in its header."""
    ctypes.CDLL(_path_of(fd))


def create_module(spec: ModuleSpec, fd: int) -> Any:
    origin, spec.origin = spec.origin, _path_of(fd)
    try:
        return ExtensionFileLoader(spec.name, spec.origin).create_module(spec)
    finally:
        spec.origin = origin


def _path_of(fd: int) -> str:
    return f"/proc/self/fd/{fd}"  # it is still ours: see read_patterns_engine


class MemoryLoader(ExtensionFileLoader):
    def __init__(self, name: str, path: str, data: bytes | IO[bytes]) -> None:
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
            with open(loader.path, "rb", buffering=0) as file:
                spec.loader = MemoryLoader(name, loader.path, file)
        except OSError:
            pass  # a container forbids memfd_create; own_files.changeable names the file
        return spec


sys.meta_path.insert(0, _Finder)

# Modules that functions import, with all of their imports; a package before its parts.
_USED_LATER = """
    types keyword operator reprlib collections functools enum copyreg re._constants re._parser
    re._casefix re._compiler re
""".split()
_USED_LATER_IN_A_RUN = "json.scanner json.decoder json.encoder json shlex".split()
_USED_FOR_PATTERNS = ("re2._re2", "re2")
_PACKAGES = frozenset({"collections", "re", "json", "re2"})
_STANDARD_LIBRARY = os.path.dirname(os.__file__)


class _ReadModules:
    """Finds the modules that were read before the command started."""

    def __init__(self) -> None:
        self._loaders: dict[str, Any] = {}
        self.files: set[str] = set()
        self._folders: dict[str, Any] = {}  # of the packages

    def read(self, name: str) -> None:
        """Read a module, or import it at once if it cannot be loaded from memory."""
        if name in self:
            return
        source, cached = _in_the_standard_library(name)
        bytecode = None if sys.pycache_prefix else read_bytecode(source, cached)
        if bytecode is not None:
            self._loaders[name] = _Code(bytecode)
            self.files |= {source, cached}
            return
        spec = _find_spec(name, self._folders_of(name.rpartition(".")[0]))
        if spec is None:
            return
        self.files |= {path for path in (spec.origin, spec.cached) if path}
        if hasattr(spec.loader, "read_ahead"):  # a library that the binary carries
            spec.loader.read_ahead()
            self._loaders[name] = spec.loader
        elif isinstance(spec.loader, MemoryLoader):
            self._loaders[name] = spec.loader
        elif isinstance(spec.loader, ExtensionFileLoader):
            __import__(name)
        else:
            self._loaders[name] = _Code(spec.loader.get_code(name))

    def __contains__(self, name: str) -> bool:
        return name in self._loaders or name in sys.modules

    def _folders_of(self, package: str) -> Any:
        if not package:
            return None
        if package in sys.modules:
            return sys.modules[package].__path__
        if package not in self._folders:
            spec = _find_spec(package, None)
            self._folders[package] = [] if spec is None else spec.submodule_search_locations
        return self._folders[package]

    def find_spec(self, name: str, _path: object = None, _: object = None) -> ModuleSpec | None:
        loader = self._loaders.get(name)
        return loader and ModuleSpec(name, loader, is_package=name in _PACKAGES)


def _in_the_standard_library(name: str) -> tuple[str, str]:
    """Return the paths of source and bytecode. A search of sys.path takes ten times as long."""
    path = f"{_STANDARD_LIBRARY}/{name.replace('.', '/')}"
    if name in _PACKAGES:
        path += "/__init__"
    folder, _, stem = path.rpartition("/")
    return f"{path}.py", f"{folder}/__pycache__/{stem}.{sys.implementation.cache_tag}.pyc"


class _Code:
    """Load a module from bytecode that was read, or from a code object."""

    def __init__(self, code: Any) -> None:
        self._code = code

    def create_module(self, _spec: object) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        code = code_of(self._code) if isinstance(self._code, bytes) else self._code
        exec(code, module.__dict__)


_read = _ReadModules()


def read_what_is_used_later(*, in_a_run: bool = True) -> None:
    for name in (*_USED_LATER, *(_USED_LATER_IN_A_RUN if in_a_run else ())):
        _read.read(name)


def read_patterns_engine(*, at_once: bool) -> None:
    """Read the engine for its import at the first pattern, or import it now: where root in the
    session may mount something over /proc, nothing is loaded from memory later.

    Raises ImportError or PolicyError if there is none.
    """
    for name in _USED_FOR_PATTERNS:
        _read.read(name)
    if at_once or "re2" not in _read:
        __import__("re2")


def read_files() -> set[str]:
    """Return the files of the modules that were read."""
    return _read.files


def import_nothing_more() -> None:
    """Limit imports to built-in modules and those that were read: the command may start.

    The import of a forgotten module then fails, and cannot run a file of the command.
    """
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter, _read]
