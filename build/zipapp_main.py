"""Imported by the zipapp's __main__: finds the extension modules inside, and starts sigwrap."""

import sigwrap.early  # isort: skip  # noqa: F401 (what it does, it does at once)
import errno
import marshal
import os
import sys

from sigwrap.imports import code_is_chosen_by_variables, restart

if not sys.flags.isolated and code_is_chosen_by_variables():
    restart()

from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec

from run_importer import find_run_modules_first

ARCHIVE = os.path.dirname(__file__)
CARRIED = os.path.join(ARCHIVE, EXTENSION_SUFFIXES[0].split(".")[1])
FOR_EVERY_PYTHON = os.path.join(ARCHIVE, "abi3")
PACKAGES_OF_EXTENSIONS = os.path.join(ARCHIVE, "extensions")
NEEDS_NONE = "sigwrap.exec._repeated"  # sigwrap goes without it


class CarriedModules:
    """Load extension modules from memory: the dynamic linker cannot read a zip.

    Unpacked to a disk, other processes could change them, and the disk could be noexec.
    """

    @staticmethod
    def find_spec(name, path=None, target=None):
        if "._" not in name:
            return None
        try:
            data = carried(name)
        except OSError:
            if name == "re2._re2":
                raise missing_patterns() from None
            return None
        from sigwrap.start.own_code import MemoryLoader

        file = os.path.join(ARCHIVE, name + ".so")
        try:
            return ModuleSpec(name, MemoryLoader(name, file, data), origin=file)
        except OSError as failure:
            if name == NEEDS_NONE:
                return None
            raise cant_load(name, failure) from None


def carried(name):
    try:
        return __loader__.get_data(os.path.join(FOR_EVERY_PYTHON, name + ".so"))
    except OSError:
        return __loader__.get_data(os.path.join(CARRIED, name + ".so"))


def cant_load(name, failure):
    from sigwrap.errors import SigwrapError

    limit = "raise the limit of a file's size: ulimit -f" if failure.errno == errno.EFBIG else ""
    return SigwrapError(f"{name} can't be loaded: {failure.strerror}", limit)


def missing_patterns():
    from sigwrap.errors import PolicyError

    return PolicyError(
        "the policy has patterns, and this zipapp carries their engine for another Python",
        f"install google-re2 for {sys.executable}, or use the binary",
    )


try:
    find_run_modules_first(
        ARCHIVE,
        marshal.loads(__loader__.get_data(os.path.join(CARRIED, "shared.code"))),
        lambda: marshal.loads(__loader__.get_data(os.path.join(CARRIED, "run.code"))),
    )
except OSError:
    pass  # of another Python
sys.path.append(PACKAGES_OF_EXTENSIONS)
sys.meta_path.append(CarriedModules)

from sigwrap.__main__ import main

main()
