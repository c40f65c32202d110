"""The front process of a run, whose pid the caller knows.

process     at the terminal's end of the run: what a Ctrl+C means, the last line of defence
interrupts  pure: when to ask the command to end, and when the key was meant for the command
parent      what the front process and sigwrap-forward share, and sigwrap-forward
terminal    restores the terminal to its state before; who sent a signal
shipper     the process that ships the session while it runs
messages    the channel to the supervisor, and its heartbeat
"""
