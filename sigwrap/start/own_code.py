"""What sigwrap runs is loaded before COMMAND may run, and its own from then on: whoever can write
the files that it was loaded from changes nothing in the processes that watch him.

What most runs never use is only read by then, and imported from memory where it is first used.
"""

from __future__ import annotations

import codecs
import os
import sys
from _frozen_importlib import (  # type: ignore[attr-defined]  # importlib would import warnings
    BuiltinImporter,
    FrozenImporter,
    ModuleSpec,
    _find_spec,
)
from _frozen_importlib_external import ExtensionFileLoader

from sigwrap.errors import PolicyError
from sigwrap.hints import Any
from sigwrap.linux import kept_library
from sigwrap.linux.own_pages import own_file_pages
from sigwrap.quick_import import code_of, read_bytecode

# Python imports a codec when it is first used.
_CODECS = ("ascii", "latin-1", "utf-8", "utf-16")

# What is imported in functions, with all that it imports in turn; a package before its parts.
_USED_LATER = """
    types keyword operator reprlib collections functools enum copyreg re._constants re._parser
    re._casefix re._compiler re
""".split()
_USED_LATER_IN_A_RUN = "json.scanner json.decoder json.encoder json shlex re2._re2 re2".split()
_PACKAGES = frozenset({"collections", "re", "json", "re2"})
_STANDARD_LIBRARY = os.path.dirname(os.__file__)

_not_kept: set[str] = set()  # a process that forks hands it on: the other's word is for both


class _Kept:
    """Modules that were read. No others are found here, and nothing is run but what was read."""

    def __init__(self) -> None:
        self._loaders: dict[str, Any] = {}
        self.files: set[str] = set()
        self._folders: dict[str, Any] = {}  # of the packages

    def read(self, name: str) -> None:
        """Imported at once where it can't be kept."""
        if name in self._loaders or name in sys.modules:
            return
        package = name.rpartition(".")[0]
        source, cached = _in_the_standard_library(name)
        bytecode = None if sys.pycache_prefix else read_bytecode(source, cached)
        if bytecode is not None:
            self._loaders[name] = _Code(bytecode)
            self.files |= {source, cached}
            return
        spec = _find_spec(name, self._folders_of(package) if package else None)
        if spec is not None:
            self.files |= {path for path in (spec.origin, spec.cached) if path}
            try:
                self._loaders[name] = _kept_loader(spec)
            except OSError:
                __import__(name)

    def has(self, name: str) -> bool:
        return name in self._loaders or name in sys.modules

    def _folders_of(self, package: str) -> Any:
        if package in sys.modules:
            return sys.modules[package].__path__
        if package not in self._folders:
            spec = _find_spec(package, None)
            self._folders[package] = [] if spec is None else spec.submodule_search_locations
        return self._folders[package]

    def find_spec(self, name: str, _path: object = None, _: object = None) -> ModuleSpec | None:
        loader = self._loaders.get(name)
        return loader and ModuleSpec(name, loader, is_package=name in _PACKAGES)


def _kept_loader(spec: Any) -> Any:
    if isinstance(spec.loader, ExtensionFileLoader):
        return _Library(kept_library.read(spec.origin))
    if hasattr(spec.loader, "read_ahead"):  # of a library that the binary carries
        kept_library.demand_folder()
        spec.loader.read_ahead()
        return spec.loader
    return _Code(spec.loader.get_code(spec.name))


def _in_the_standard_library(name: str) -> tuple[str, str]:
    """Where it would lie: to find each by sys.path takes ten times as long."""
    path = f"{_STANDARD_LIBRARY}/{name.replace('.', '/')}"
    if name in _PACKAGES:
        path += "/__init__"
    folder, _, stem = path.rpartition("/")
    return f"{path}.py", f"{folder}/__pycache__/{stem}.{sys.implementation.cache_tag}.pyc"


class _Code:
    """Bytecode as it was read, or code."""

    def __init__(self, code: Any) -> None:
        self._code = code

    def create_module(self, _spec: object) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        code = code_of(self._code) if isinstance(self._code, bytes) else self._code
        exec(code, module.__dict__)


class _Library:
    def __init__(self, fd: int) -> None:
        self._fd = fd

    def create_module(self, spec: Any) -> Any:
        library = kept_library.Reachable(self._fd)
        spec.origin = library.path
        with library:
            return ExtensionFileLoader(spec.name, library.path).create_module(spec)

    def exec_module(self, module: Any) -> None:
        ExtensionFileLoader(module.__name__, "").exec_module(module)


_kept = _Kept()


def keep_what_is_loaded(*, in_a_run: bool = True, needs_patterns: bool = False) -> list[str]:
    """Returns the files that can't be kept; once more, where more was loaded since. ImportError or
    PolicyError where there is no engine for the patterns of a policy that has some."""
    for name in _CODECS:
        codecs.lookup(name)
    for name in (*_USED_LATER, *(_USED_LATER_IN_A_RUN if in_a_run else ())):
        try:
            _kept.read(name)
        except PolicyError:
            continue  # a zipapp has no engine for this Python: few policies do without
    if needs_patterns and not _kept.has("re2"):
        __import__("re2")
    _not_kept.update(own_file_pages())
    return sorted(_not_kept)


def kept_files() -> set[str]:
    """Those that were read for later."""
    return _kept.files


def import_nothing_more() -> None:
    """But what is part of the interpreter, or was read by now. An import that was forgotten fails,
    and does not run what COMMAND has put in its place."""
    kept_library.command_may_run()
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter, _kept]
