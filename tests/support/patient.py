"""sigwrap that lets a session end by itself, and answer, however slow the machine is."""

import sys

from sigwrap.__main__ import main
from sigwrap.protocols import control_client
from sigwrap.run import activation

activation._OWN_END_S = 30.0
control_client.PATIENCE_S = control_client.WITHIN_S = 30.0
sys.argv[0] = "sigwrap"
main()
