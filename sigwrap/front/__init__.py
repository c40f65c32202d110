"""The front process of a run, whose pid the caller knows.

process    the end of a run at the terminal: what a Ctrl+C means, and the last line of defence
parent     what it shares with sigwrap-forward: signals, one child, the end of its tree
senders    which process sent a signal, and which one started sigwrap
terminal   restores the terminal's modes after the command
notifier   runs the --notify command
joining    a command in a session that other commands join, or its start in the background
relay      a terminal of its own for a command that joins
"""
