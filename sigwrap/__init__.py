"""sigwrap: run a command under supervision.

The packages and modules, from the bottom up. Imports go downward only (tests/test_layers.py):

hints       names of typing, without the import of typing
quick_import  import our own modules without searching sys.path
bare        parts of the standard library that import faster
early       handles an interrupt while sigwrap starts
isolation   keeps variables and the current directory from choosing imports
status      the exit statuses
amounts     durations and sizes, as people type them
escape      escape untrusted text for a terminal
nearest     suggest the closest word
errors      the errors that sigwrap raises
events      the types of the log's events, and their versions
outcomes    outcomes of actions, and their counts
tuples      named tuples that are cheap to define: a start defines a hundred
machine     the machine's architecture, and its system call numbers
calls       the mediated system calls
store       the event log: hash chain, journal, SQLite
policy      pure: a policy and a described request in, a decision out
agent       pure: signals to a session as a whole
mediate     pure: decide about requests and about the end of a run
hooks       pure: judges an agent's tool call before it runs
platform    the capabilities of a backend, and those that a run lacks
linux       the kernel's interfaces: seccomp, ptrace, memory, processes, signals
protocols   messages between two processes of sigwrap, both ends of each
start       the command's program, its environment, the policy's files
run         the supervisor: a loop that carries decisions out
stub        the process that takes the place of a recorded command's caller
front       the front process: terminal, interrupts, kill if the supervisor dies
forward     sigwrap-forward, an init for one command
report      folds over the log, and their renderers
doctor      tests the features of this machine that a run needs
watch       shows all sessions and answers requests: on a terminal, or as a web page
cli         the command line and its output
"""

__version__ = "0.1.0"
