"""A signal call as the kernel does it.

call      decodes which signal a call asks for, and by what it names the target
aim       whom a call would reach: the facts of a signal
targets   which process a number names, and what that process is to the sender
send      sends it in the caller's place, and never more than the caller could
"""
