"""The front process of a run, whose pid the caller knows.

process     the end of a run at the terminal: what a Ctrl+C means, and the last line of defence
caller      who started sigwrap, and that one's end
sender      who sent a signal, as far as that can still be seen
terminal    the terminal as it was before COMMAND
parent      what it has in common with sigwrap-forward: signals, one child, the end of its tree
joining     a command in a session that others have joined as well
background  the session of a name, started where it does not run
notifier    what tells somebody of a question, where the user has named a command for that
relay       a terminal of its own for a command that joins
"""
