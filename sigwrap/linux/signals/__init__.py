"""Signal calls, as the kernel does them.

call     decodes which signal a call asks for, and how it names its target
aim      resolves which processes a call would reach
targets  finds processes, groups, terminals and owners, and what they are to the sender
send     sends signals, and sets owners and limits for the caller
"""
