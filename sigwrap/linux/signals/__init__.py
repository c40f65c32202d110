"""Signal calls, as the kernel handles them.

call     decodes a call: its signal, and how it names its target
aim      resolves the processes that a call would reach
targets  finds processes, groups, terminals and owners, and their relation to the sender
send     sends signals, and sets owners and limits for the caller
"""
