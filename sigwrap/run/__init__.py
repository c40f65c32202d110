"""The supervisor of a run: a loop that feeds the pure parts and carries out what they say.

run           a session from its id to its sealed log
plan          what a run is to be, by its settings and its policy
agents        a command that is an agent with a preset
opening       the log is begun
closing       the last words, to the user and in the log
settings      what a run was asked to do
launch        from fork to COMMAND's first exec
lacking       what a run lacks here, and whether it starts without
walls         what the kernel itself holds, and what it leaves open here
session       what each part is handed: facts, services, parts; and the turns of its loop
loop          descriptors and deadlines of one thread
workers       threads for work that may block, and facts that they find
mediation     from a notification to the mediator of its family
turns         which exec may go on, and who waits
perform       carries effects out; only it answers a notification
execs         the edge of the exec mediator: facts, tracing, replacing
signals       the edge of the signal mediator
network       the edge of the network mediator
network_peers  the other end of a connection: its names, and the process that listens
files         the edge of the file mediator, refused files, and folders that rules want
forks         the edge of the fork mediator
restarts      calls that a signal has broken off are made again
asking        requests for approval: on the terminal, through the control socket
joined        a session that commands join
recording     commands whose input and output are recorded: the supervisor's side of their stubs
processes     the processes of the tree, held by pidfds
children      what wait(2) reports: stops of tracing, stops of job control, ends
job_control   Ctrl+Z and fg
front_link    the supervisor's end of the channel to the front process
agent_signals  log and carry out signals to the whole session
freezing      freeze the process tree, and let no exec start
killswitch    a session's look at the kill switch
activation    turning the kill switch on: the end of every session
usage         looks at processor time and memory, where the policy limits them
ending        does what mediate/run_end.py says
remote_switch  the remote kill switch: when to poll, and what to do with the answer
remote_poll   one poll of its URL
recorder      the log, as the rest of the run sees it
diagnostic    how the session stands, and a copy of its log
tool_calls    what hooks in the session report
watchers      rules that escalate, loops, drift, attempts on sigwrap: they become agent signals
repeats       log the first of many equal events, and a count of the others
"""
