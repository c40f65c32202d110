"""sigwrap: run a command under supervision.

early         lets an interrupt end a starting sigwrap, and checks for memory
imports       imports our own modules quickly, and none that a project chooses
bare          light replacements for modules of the standard library
errors        the exceptions of sigwrap, and the exit statuses
text          text: escaped, masked, and read as a word, a duration or a size
events        the types of the log's events, the outcomes of actions, and their counts
machine       the machine's architecture, its system call numbers, its capabilities
calls         the mediated system calls
https         addresses of web servers, and a client that gets one short answer

start         prepares the command: its program, its environment, the policy's files
kernel        the kernel's interfaces: seccomp, ptrace, memory, processes, signals
session       a session, its loop, the performer, the end of a run
exec          execs: facts, judgement, verification, replacements
signal        signals between processes
network       connections, datagrams, listening sockets
files         calls that change files, and refused files
record        commands whose input and output are recorded
approve       approval requests
control       kill switches, agent signals, limits
join          sessions that several commands join
front         the front process: terminal, interrupts, kill if the supervisor dies
log           the event log: hash chain, journal, SQLite

policy        pure: a policy and a described request in, a decision out
agent         pure: signals to a whole session
hooks         pure: judges a tool call of an agent before it happens
report        summaries of the log, and their formats
doctor        tests what this machine can do for a run
fleet         the sessions of many machines in one place, for other engines
watch         shows all sessions and answers approval requests: a terminal and a page
cli           command line arguments and terminal output
"""

__version__ = "0.1.0"
