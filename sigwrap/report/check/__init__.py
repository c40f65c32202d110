"""Checks of a log, and decisions made again from it.

verify     its hash chain, its order, its frame, its counts
in_child   the same of a long log, in a child process
decisions  the recorded policy, and each decision again from its event alone
what_if    each decision again, under another policy
"""
