"""Signal calls, as the kernel does them.

call     decodes which signal a call asks for, and how it names its target
aim      resolves which processes a call would reach
groups   whether a group, a terminal or an owner is the session's own
targets  finds the process of a number, and what it is to the sender
send     sends signals and sets owners and limits for the caller
owners   has a descriptor signal its owner
"""
