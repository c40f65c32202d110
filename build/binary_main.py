"""The binary's __main__. Libraries and modules that most runs never need are not unpacked: they
are loaded from memory when they are first needed.
"""

import errno
import marshal
import os
import stat
import sys
import zlib
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import ExtensionFileLoader

import early  # it is sigwrap/early.py, and there already
from run_importer import find_run_modules_first

# The libraries of each module, in the order of loading; build/sigwrap.spec packs them.
CARRIED = {
    "re2._re2": ("libgcc_s", "libstdcxx", "re2"),
    "yaml._yaml": ("yaml",),
    "_ssl": ("ssl",),
}


class CarriedModules:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in CARRIED:
            return ModuleSpec(name, Library(CARRIED[name]))
        if name in CODE.MODULES:
            return ModuleSpec(name, Code, is_package=name in CODE.PACKAGES)
        return None


class Code:
    """Load modules of Python itself."""

    unpacked = None

    @staticmethod
    def read_ahead():
        """Do nothing: they are part of this file."""

    @classmethod
    def get_code(cls, name):
        if cls.unpacked is None:
            cls.unpacked = marshal.loads(zlib.decompress(CODE.PACKED))
        return marshal.loads(cls.unpacked[name])

    @staticmethod
    def create_module(spec):
        return None

    @classmethod
    def exec_module(cls, module):
        exec(cls.get_code(module.__name__), module.__dict__)


class Library:
    packed = ()

    def __init__(self, libraries):
        self.libraries = libraries

    def read_ahead(self):
        """Read the libraries, so that a later change of the binary has no effect."""
        if not self.packed:
            modules = [__import__("sigwrap_carried_" + each) for each in self.libraries]
            self.packed = [module.PACKED for module in modules]
            for module in modules:
                del sys.modules[module.__name__]

    def create_module(self, spec):
        from sigwrap.start import own_code

        self.read_ahead()
        try:
            *needed, library = [
                own_code.sealed(each, zlib.decompress(packed))
                for each, packed in zip(self.libraries, self.packed, strict=True)
            ]
            for each in needed:
                own_code.load_library(each)
        except OSError as failure:  # memfd_create, or code from there, may be forbidden
            raise ImportError(f"{spec.name}: {failure}") from failure
        return own_code.create_module(spec, library)

    def exec_module(self, module):
        ExtensionFileLoader(module.__name__, "").exec_module(module)


def packed_file(_loader, path):
    """Return the content of a file of data: the binary carries these packed in one module.

    It replaces the loader's own function, which reads a file that each start would have to unpack.
    """
    from sigwrap_carried_files import PACKED

    try:
        return zlib.decompress(PACKED[os.path.relpath(path, FOLDER)])
    except KeyError:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None


def keep_others_folder():
    """Put an empty folder in place of another one: the bootloader removes all below its path.

    Processes of a session may be able to rename the folder, and to leave a link to another one.
    """
    try:
        found = os.lstat(FOLDER)
        if (found.st_dev, found.st_ino) != IDENTITY:
            if stat.S_ISLNK(found.st_mode):
                os.unlink(FOLDER)
            elif os.listdir(FOLDER):
                os.rename(FOLDER, FOLDER + ".kept")
            else:
                return  # a run has put it there (start/onefile.py)
            os.mkdir(FOLDER, 0o700)
    except OSError:
        pass  # it was removed, or cannot be changed


FOLDER = sys._MEIPASS
IDENTITY = os.lstat(FOLDER).st_dev, os.lstat(FOLDER).st_ino
try:
    CODE = __import__("sigwrap_carried_code")
    sys.meta_path.insert(0, CarriedModules)
    find_run_modules_first(
        FOLDER,
        __import__("sigwrap_shared_modules").CODE,
        lambda: __import__("sigwrap_run_modules").CODE,
    )
    from sigwrap import __main__ as sigwrap_main

    type(sys.modules["sigwrap"].__loader__).get_data = packed_file
except MemoryError:
    early.end_without_memory()

sigwrap_main.before_exit = keep_others_folder
sigwrap_main.main()
