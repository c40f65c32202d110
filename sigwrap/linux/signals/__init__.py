"""A signal call as the kernel does it.

words      what a call's pointer leads to
call       decodes which signal a call asks for, and by what it names the target
aim        whom a call would reach: the facts of a signal
jobs       whether a group, a terminal or a tracer is the session's own
targets    which process a number names, and what that process is to the sender
terminals  what the kernel knows of a terminal
send       sends it in the caller's place, and never more than the caller could
owners     has a descriptor signal its owner
parents    what a direct child may change of its parent, and its limits set in the caller's place
"""
