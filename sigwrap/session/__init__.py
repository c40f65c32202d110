"""A session: its facts, its parts, the turns of its loop.

run         a session from its settings to its sealed log
policy_url  gets a signed policy by its URL, or the copy that it keeps
session     facts, services and parts of a session; runs its loop
mediation   passes each notification to its family's handler; approval requests for all of them
effects     pure: what mediators yield, and the replies that they get
perform     the performer: carries effects out; only it answers a notification
lineage     pure: parents, depths, and the relation of a target to its sender
processes   the processes of the tree, and the exec whose turn it is
recorder    writes the log for all parts of a run: repeated events as counts, its size limit
run_end     pure: every reason to end a run, and what follows
ending      does that; handles wait(2): stops, and the ends of processes
settings    the options of a run
sandbox     what the kernel enforces, and what it leaves open here
launch      gives the command's process its orders; what this machine lacks; agents
loop        descriptors and deadlines of one thread, and workers for what may block
front_link  the supervisor's end of the channel to the front process; Ctrl+Z and fg
diagnosis   the session's state, and a copy of its log
"""
