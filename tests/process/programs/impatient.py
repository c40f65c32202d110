"""sigwrap that asks its remote kill switch every tenth of a second."""

import sys

from sigwrap.__main__ import main
from sigwrap.run.remote_switch import switch

switch.EVERY_S = 0.1
sys.argv[0] = "sigwrap"
main()
