"""A place to watch all sessions of a store from, and to answer what they ask.

board       pure: what is seen at a moment, of every session
question    what waits for an answer, in words
documents   the same as JSON
source      looks at the sessions, and makes it
attendance  sessions are to know that somebody is here
followed    the log of one that runs, as it grows
orders      pure: what may be asked for
asking      all that run are asked, once
actions     answers, interrupts, the kill switch
telling     tells of what has come to wait
terminal    `sigwrap watch`
page        the page of sigwrap serve, and its server
"""
