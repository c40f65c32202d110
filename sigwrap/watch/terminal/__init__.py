"""`sigwrap watch`: the same on a terminal.

keys      bytes of a terminal as keys
face      pure: what is chosen and being typed, and what a key asks for
drawing   pure: rows for a terminal of some size
screen    the terminal itself: its modes, and what is on it
watching  a loop over keys, news and what was done
"""
