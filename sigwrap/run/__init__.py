"""Run the supervisor: a loop that feeds the pure parts and carries out their results.

run           a session from its id to its sealed log
plan          the parts that a run needs, from its settings and its policy
agents        a command that is an agent with a preset
opening       begins the log
closing       the last messages, to the user and in the log
settings      the options of a run
launch        from fork to the command's first exec
lacking       missing features of this machine, and whether the run may start
walls         what the kernel enforces, and what it leaves open here
session       facts, services and parts of a session; runs its loop
loop          descriptors and deadlines of one thread
workers       threads for work that may block
mediation     passes each notification to the mediator of its family
turns         decides which exec may go on
perform       carries effects out; only it answers a notification
execs         facts and effects of execs: tracing, replacing
signals       facts and effects of signals
network       facts and effects of network calls
network_peers  the other end of a connection: its names, and the listening process
files         facts of file calls, refused files, and folders that rules want
forks         facts and effects of forks
restarts      repeats calls that a signal interrupted
asking        approval requests: on the terminal, through the control socket
joined        a session that commands join
recording     the supervisor's side of stubs, which record input and output
processes     the processes of the tree, with their pidfds
children      handles wait(2): tracing stops, job control stops, ends
job_control   Ctrl+Z and fg
front_link    the supervisor's end of the channel to the front process
agent_signals  log and carry out signals to the whole session
freezing      freeze the process tree, and let no exec start
killswitch    ends a session when the kill switch is turned on
activation    turns the kill switch on: the end of every session
usage         measures processor time and memory, if the policy limits them
ending        carries out mediate/run_end.py
remote_switch  the remote kill switch: when to poll, and what to do with the answer
remote_poll   one poll of its URL
recorder      the log, for the rest of the run
diagnostic    the session's state, and a copy of its log
tool_calls    tool calls that hooks in the session report
watchers      rules that escalate, loops, drift, attempts on sigwrap: they become agent signals
repeats       log the first of many equal events, and a count of the others
"""
