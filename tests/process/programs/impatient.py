"""sigwrap that polls its remote kill switch every tenth of a second."""

import sys

from sigwrap.__main__ import main
from sigwrap.control import remote_switch

remote_switch.EVERY_S = 0.1
sys.argv[0] = "sigwrap"
main()
