"""Is the log what its writer wrote?

verify           its chain, its order, its frame, its counts
reproduce        each decision again, under the recorded policy
telling          does an event tell what was judged
recorded_policy  that policy, from the log alone
what_if          each decision again, under another policy
"""
