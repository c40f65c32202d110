"""sigwrap that writes down, in the file that its first argument names, what its processes import or
open as code after COMMAND may run. The other arguments are those of sigwrap."""

import os
import sys

from sigwrap.start import own_code

note_fd = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
late = False


def note(event, arguments):
    if not late or event not in ("import", "open", "ctypes.dlopen"):
        return
    name = str(arguments[0])
    if event != "open" or name.endswith((".py", ".pyc", ".so")):
        os.write(note_fd, f"{event} {name}\n".encode())


def import_nothing_more():
    global late
    sealed()
    os.write(note_fd, b"sealed\n")
    late = True


sealed = own_code.import_nothing_more
own_code.import_nothing_more = import_nothing_more
sys.addaudithook(note)

from sigwrap.__main__ import main  # noqa: E402 (what it imports is not late)

sys.argv[0] = "sigwrap"
main()
