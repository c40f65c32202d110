"""Whoever runs the tests may ignore signals (nohup, a CI runner): the children started here must
not, or half of them would be testing that."""

from __future__ import annotations

import signal

for _number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE}:
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)
