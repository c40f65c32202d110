"""What ends, freezes or limits a whole session.

killswitch     the kill switch: its file, and the signal that ends a session
activation     turns the kill switch on: the end of every session
remote_switch  the remote kill switch: polls a URL
agent_signals  signals to the whole session, and tool calls that hooks report
watchers       rules that escalate, loops, drift, attempts on sigwrap: they become agent signals
usage          limits on processor time and memory, by /proc and control groups
forks          limits on new processes: the handler of forks
freezing       stops the whole tree, lets no exec start, and continues it
"""
