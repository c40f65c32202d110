"""The zipapp's __main__. Any Python can read it, 2.7 too."""

import sys

if sys.version_info < (3, 11):
    found = sys.version_info[:2]
    sys.stderr.write("sigwrap: needs Python 3.11 or newer; this is %d.%d\n" % found)
    sys.exit(125)

import zipapp_main  # noqa: F401
