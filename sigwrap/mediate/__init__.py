"""Pure: requests in, decisions and commands out; no kernel, no files, no clock.

settings     what a run was asked to do
interrupts   the Ctrl+C state machine
lineage      who is whose child, at which depth, and what a signal's target is to its sender
execs        what an exec's event says, and how a script's first line reads
signals      what is decided about a signal, and what its event says
approvals    the queue of what waits for a yes or a no
masking      secrets in arguments
"""
