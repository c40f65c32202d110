"""Checks of a log, and decisions made again from it.

verify           its hash chain, its order, its frame, its counts
reproduce        each decision again, under the recorded policy
what_if          each decision again, under another policy
redecide         one decision again, from its event alone
recorded_policy  the policy of a session, from its log alone
"""
