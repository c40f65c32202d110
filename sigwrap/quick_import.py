"""Import our own modules without searching sys.path: a start imports two hundred, and Python
searches several folders for each. A module loads from its usual bytecode file if that matches the
source. Python imports everything else, but collections.abc without its package."""

from __future__ import annotations

import _collections_abc
import marshal
import posix
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER, PathFinder, SourceFileLoader

from sigwrap.bare import Any

_HEADER_BYTES = 16
_SUFFIX = f".{sys.implementation.cache_tag}.pyc"


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, bytecode: bytes) -> None:
        super().__init__(name, path)
        self._bytecode = bytecode

    def get_code(self, fullname: str) -> Any:
        code = code_of(self._bytecode)
        self._bytecode = b""
        self.__class__ = SourceFileLoader  # type: ignore[assignment]
        return code


class _CollectionsLoader(SourceFileLoader):
    def exec_module(self, module: Any) -> None:
        super().exec_module(module)
        module.abc = _collections_abc


class _Finder:
    def __init__(self, parent_folder: str) -> None:
        self._root = parent_folder

    def find_spec(self, name: str, _path: object = None, _: object = None) -> ModuleSpec | None:
        if name == "collections":
            spec = PathFinder.find_spec(name)
            if spec is not None and type(spec.loader) is SourceFileLoader:
                spec.loader = _CollectionsLoader(name, spec.loader.path)
            return spec
        if not name.startswith("sigwrap."):
            return None
        path = f"{self._root}/{name.replace('.', '/')}"
        folder, _slash, last = path.rpartition("/")
        return self._spec(name, folder, last) or self._spec(name, path, "__init__")

    def _spec(self, name: str, folder: str, stem: str) -> ModuleSpec | None:
        source = f"{folder}/{stem}.py"
        cached = f"{folder}/__pycache__/{stem}{_SUFFIX}"
        bytecode = read_bytecode(source, cached)
        if bytecode is None:
            return None
        spec = ModuleSpec(name, _Loader(name, source, bytecode), origin=source)
        spec.has_location = True
        spec.cached = cached
        if stem == "__init__":
            spec.submodule_search_locations = [folder]
        return spec


def read_bytecode(source: str, cached: str) -> bytes | None:
    """Return the bytecode; None if there is none that matches the source."""
    try:
        fd = posix.open(cached, posix.O_RDONLY | posix.O_CLOEXEC)
        try:
            bytecode = posix.read(fd, posix.fstat(fd).st_size)
        finally:
            posix.close(fd)
        status = posix.stat(source)
    except OSError:
        return None
    matches = bytecode[:_HEADER_BYTES] == _header(int(status.st_mtime), status.st_size)
    return bytecode if matches else None


def code_of(bytecode: bytes) -> Any:
    return marshal.loads(memoryview(bytecode)[_HEADER_BYTES:])


def _header(changed_s: int, size: int) -> bytes:
    numbers = (0, changed_s & 0xFFFFFFFF, size & 0xFFFFFFFF)
    return MAGIC_NUMBER + b"".join(number.to_bytes(4, "little") for number in numbers)


def _install(package: Any) -> None:
    """Install the finder if the package is in a folder, and bytecode in its usual place."""
    is_a_file = type(package.__spec__.loader) is SourceFileLoader
    if is_a_file and sys.pycache_prefix is None and package.__spec__.cached:
        finder: Any = _Finder(package.__path__[0].removesuffix("/sigwrap"))
        sys.meta_path.insert(0, finder)
        # It is the same module. Its package takes 1 ms to import, and imports four others.
        sys.modules.setdefault("collections.abc", _collections_abc)


_install(sys.modules["sigwrap"])
