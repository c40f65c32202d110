"""Import the modules of a run in the binary and the zipapp: their code was read in two pieces
(build/run_modules.py).
"""

import marshal
import os
import sys
from _frozen_importlib import ModuleSpec


class RunModules:
    """`shared`: the code of the first piece. `read_more` reads the second one."""

    def __init__(self, folder, shared, read_more):
        self.folder = folder
        self.code = shared
        self.read_more = read_more

    def find_spec(self, name, path=None, target=None):
        if not name.startswith("sigwrap."):
            return None
        if self.read_more and name not in self.code and name + "." not in self.code:
            self.code.update(self.read_more())
            self.read_more = None
        is_package = name + "." in self.code
        if not is_package and name not in self.code:
            return None
        spec = ModuleSpec(name, self, is_package=is_package)
        if is_package:
            spec.submodule_search_locations = [self.file_of(name)]
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__name__
        code = self.code.pop(name, None)
        if code is None:
            code = self.code.pop(name + ".")
            module.__file__ = self.file_of(name) + "/__init__.py"
        else:
            module.__file__ = self.file_of(name) + ".py"
        exec(marshal.loads(code), module.__dict__)

    def file_of(self, name):
        return os.path.join(self.folder, *name.split("."))


def find_run_modules_first(folder, shared, read_more):
    sys.meta_path.insert(0, RunModules(folder, shared, read_more))
