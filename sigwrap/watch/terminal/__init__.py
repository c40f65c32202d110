"""`sigwrap watch` on a terminal.

state     pure: what is selected and being typed, and what a key does
drawing   pure: rows for a terminal of some size
screen    the terminal: its modes and content, and its bytes as keys
watching  a loop over keys, news and finished orders
"""
