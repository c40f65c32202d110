"""sigwrap: run a command under supervision.

Packages from the bottom up; imports go downward only (tests/test_layers.py checks that):

hints       names of typing, without importing typing
quick_import  import our own modules without searching sys.path
bare        light replacements for modules of the standard library
early       lets an interrupt end a starting sigwrap, and checks for memory
isolation   keeps variables and the current folder from choosing imports
status      the exit statuses
amounts     durations and sizes, as users type them
escape      escapes untrusted text for a terminal
nearest     suggests the closest word
errors      the exceptions of sigwrap
events      the types of the log's events, and their versions
outcomes    outcomes of actions, and their counts
tuples      named tuples that are cheap to define: a start defines a hundred
machine     the machine's architecture, and its system call numbers
calls       the mediated system calls
store       the event log: hash chain, journal, SQLite
policy      pure: a policy and a described request in, a decision out
agent       pure: signals to a whole session
mediate     pure: decides about requests, and about the end of a run
hooks       pure: judges a tool call of an agent before it happens
platform    capabilities of a backend, and what a run lacks without them
linux       the kernel's interfaces: seccomp, ptrace, memory, processes, signals
protocols   messages between processes of sigwrap, both ends of each
start       prepares the command: its program, its environment, the policy's files
run         the supervisor: a loop that carries decisions out
stub        the process that takes the place of a recorded command's caller
front       the front process: terminal, interrupts, kill if the supervisor dies
forward     sigwrap-forward, an init for one command
report      summaries of the log, and their formats
doctor      tests what this machine can do for a run
watch       shows all sessions and answers approval requests: a terminal and a page
cli         command line arguments and terminal output
"""

__version__ = "0.1.0"
