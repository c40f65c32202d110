"""sigwrap: run a command under supervision.

The map, from the bottom up; imports go downward only (tests/test_layers.py holds that):

errors, status, model   what everything speaks of: failures, exit statuses, requests, events
kernel                  the only ctypes: seccomp, ptrace, memory, processes, signals
policy                  pure: a policy and a described request in, a decision out
store                   the event log: hash chain, journal, SQLite
session                 pure: lineage, the interrupt state machine, what an event says
supervise               the loop that carries decisions out
stub                    what stands in for an intercepted command
forward                 the front process: terminal, interrupts, last line of defence
report                  folds over the log, and what renders them
cli                     words on the command line, lines on the terminal
"""

__version__ = "0.1.0"
