"""Is the log what its writer wrote?

verify           its chain, its order, its frame, its counts
reproduce        each decision again, under the recorded policy
account          what a session says of itself as a whole
before           what an event rests on that came before it
telling          does an event tell what was judged
whatever_words   what may have been decided, where words were masked or cut
recorded_policy  that policy, from the log alone
what_if          each decision again, under another policy
"""
