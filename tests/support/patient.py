"""sigwrap that lets every session end by itself, however slow the machine is."""

import sys

from sigwrap.__main__ import main
from sigwrap.control import activation

activation._OWN_END_S = 30.0
sys.argv[0] = "sigwrap"
main()
