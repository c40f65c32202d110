"""Checks of a log, and decisions made again from it.

verify           its hash chain, its order, its frame, its counts
decisions        each decision again, from its event alone
what_if          each decision again, under another policy
recorded_policy  the policy of a session, from its log alone
"""
