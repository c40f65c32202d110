"""What the kernel offers, and the facts that mediators get. The only ctypes in sigwrap; an errno is
translated once, here.

libc               the calls Python lacks
bpf                the seccomp filter as a program, from the table of calls
seccomp            installing the filter, and the listener's ioctls
cgroups            those we are in, and by which somebody inside could stop or kill others
session_cgroup     those of a session's own, which count what it uses
usage              what a tree uses, as /proc shows it
landlock           the wall between the session and whoever is outside, and around files
plain_file         opening what may be a FIFO or a device
file_tree          what is on the disk where file rules part
ptrace             stopping another thread, looking at it and sending it on
registers          pure: the registers of a stopped thread, by machine
broken_off         what comes of a system call that a signal or a stop has broken off
blind_tracer       a tracer that asks for no stop after execs is made to
memory             strings and arrays of another process
file_state         what statx tells of a file, without asking who serves it
paths              which file a path means to another process
ways               where paths led at the start, and whether they still do
mounts             which file systems answer by themselves
fuse               who serves a file system
taken              descriptors of other processes, taken as our own
proc_files         files below a /proc that nobody can put another one over
procfs             what /proc says of a process
presence           that somebody is there, told by a lock on a folder
process            children, descendants, the end of a whole tree
frozen             a whole tree stands still, and goes on
supervisors        those of all sessions of a user
session_line       an address that each supervisor listens on, for those outside of all sessions
death              ends by a signal
pidfd              signals to a process that is held, and its end
pidns              numbers that a process in another pid namespace uses
sigfd              signals as readable events, with their sender
signal_waiters     whether a process that blocks a signal waits for it
waits              how long a poll may wait
peer               which process is at the other end of a unix socket
listeners          which process answers at a port of this machine
memory_library     extension modules that are loaded from memory
own_environment    variables that /proc no longer shows of our own processes
removal            the end of a folder in which anybody may have put anything
rights        whether another process has the rights that this one has
descriptors        descriptors that sigwrap inherited
pipes              how much a pipe holds
limits             the caller's limits, which are meant for COMMAND alone
bounded            calls on a caller's socket that a signal ends in bounded time
caller_stderr      a line on a caller's standard error
own_lines          sigwrap's own lines, written by a thread
held_terminals     those that sigwrap speaks on, open from before COMMAND
terminal_typists   who could type on our terminal in the place of a person
terminal_readers   which processes wait for a terminal's input
execs              what an exec would run, what it did run, and another in its place
sockets            what sockets of others are, whom they are to reach, and that being done
files              calls that change files by their paths: what they ask for, and where that lies
signals            what a signal call asks for, whom it would reach, and sending it
reference          docs/calls.md
"""
