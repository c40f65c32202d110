"""A session that several commands join.

joining      starts or finds the session, and runs a command in it
relay        a terminal of its own for such a command
joins        the supervisor's side
fork_server  forks the commands; the messages of all three
"""
