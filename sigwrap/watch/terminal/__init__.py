"""`sigwrap watch` on a terminal.

state     pure: what is selected and being typed, and what a key does
drawing   pure: rows for a terminal of some size
watching  the terminal, and a loop over keys, news and finished orders
"""
