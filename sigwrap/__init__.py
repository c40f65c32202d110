"""sigwrap: run a command under supervision.

The map, from the bottom up; imports go downward only (tests/test_layers.py holds that):

hints       names of typing, without the import of typing
quick_import  import our own modules without searching sys.path
bare        of the standard library, what a run can't wait for
early       an interrupt before there is anything to end but sigwrap itself
isolation   keeps variables and the current folder from choosing imports
status      the exit statuses
amounts     spans of time and sizes, as people type them
escape      text of supervised processes, made harmless for a terminal
nearest     the word that somebody meant who mistyped one
errors      everything that sigwrap raises on purpose
events      the types of the log's events, and their versions
outcomes    what became of an action, and how many there were
tuples      named tuples that are cheap to define: a start defines a hundred
machine     which machine this is, and the numbers of calls there
calls       the mediated system calls
store       the event log: hash chain, journal, SQLite
policy      pure: a policy and a described request in, a decision out
agent       pure: signals to a session as a whole
mediate     pure: what is to happen with a request, and at the end of a run
hooks       pure: a tool call of an agent, judged before it happens
platform    what a backend has to offer, and what a run is without
linux       what the kernel offers: seccomp, ptrace, memory, processes, signals
protocols   what two processes of sigwrap tell each other, both ends of each
start       what COMMAND is started from: its program, its environment, the policy's files
run         the supervisor: a loop that carries decisions out
stub        the process that takes the place of a recorded command's caller
front       the front process: terminal, interrupts, last line of defence
forward     sigwrap-forward, an init for one command
report      folds over the log, and what renders them
doctor      what this machine can do for a run, by trying it
watch       a place to watch all sessions from, and to answer: a terminal and a page
cli         words on the command line, lines on the terminal
"""

__version__ = "0.1.0"
