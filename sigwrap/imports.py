"""Import our own modules quickly, and none that variables or the current folder choose.

Quickly: a start imports two hundred, and Python searches several folders for each. Here a module
loads from its usual bytecode file if that matches the source. Python imports everything else, but
collections.abc without its package.

A project may set variables that choose imports, or the current folder. If they would choose,
sigwrap restarts Python with -I, which ignores them. The command still gets the variables.
"""

from __future__ import annotations

import _collections_abc
import marshal
import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER, PathFinder, SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any  # an import at run time could already be a project's

_HEADER_BYTES = 16
_SUFFIX = f".{sys.implementation.cache_tag}.pyc"
# Variables that choose files which Python runs.
_CHOOSE_CODE = (
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONPLATLIBDIR",
    "PYTHONPYCACHEPREFIX",
    "PYTHONUSERBASE",
    "PYTHONWARNINGS",
)
# Packages beside sigwrap come after the standard library, as usual.
_START = (
    "import sys; sys.path.append(sys.argv[1]); del sys.argv[:2]; import site; site.main();"
    "from sigwrap.__main__ import main; main()"
)


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
        fd = os.open(cached, os.O_RDONLY | os.O_CLOEXEC)
        try:
            bytecode = os.read(fd, os.fstat(fd).st_size)
        finally:
            os.close(fd)
        status = os.stat(source)
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


def isolate() -> None:
    if sys.flags.isolated or getattr(sys, "frozen", False):
        return
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if code_is_chosen_by_variables() or _starts_with_current_folder():
        restart("-S", "-c", _START, package)
    _leave_out_users_packages(package)


def code_is_chosen_by_variables() -> bool:
    return any(map(os.environ.__contains__, _CHOOSE_CODE))


def restart(*words: str) -> None:
    os.execve(sys.executable, [sys.executable, "-I", *words, *sys.argv], _environment())


def _environment() -> dict[bytes, bytes]:
    try:
        with open("/proc/self/environ", "rb") as file:  # Python may add to os.environ
            pairs = (entry.partition(b"=") for entry in file.read().split(b"\0"))
            return {name: value for name, equals, value in pairs if name and equals}
    except OSError:
        return dict(os.environb)  # without /proc, sigwrap runs no command


def _starts_with_current_folder() -> bool:
    """Return whether Python looks there first, as for `python -m sigwrap`."""
    first = sys.path[0] if sys.path and not sys.flags.safe_path else None
    try:
        return first == "" or first == os.getcwd()
    except OSError:
        return True  # the folder was removed


def _leave_out_users_packages(package: str) -> None:
    """Remove ~/.local from sys.path if sigwrap is not installed there."""
    site = sys.modules.get("site")
    folder = getattr(site, "USER_SITE", None) if getattr(site, "ENABLE_USER_SITE", None) else None
    if folder in sys.path and folder != package:
        sys.path.remove(folder)
