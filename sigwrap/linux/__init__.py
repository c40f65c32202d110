"""What the kernel offers, and the facts that mediators get. The only ctypes in sigwrap; an errno is
translated once, here.

libc               the calls Python lacks
bpf                the seccomp filter as a program, from the table of calls
seccomp            installing the filter, and the listener's ioctls
cgroups            the cgroups that sigwrap is in, and those by which a process could kill others
usage              what a tree uses, by /proc and by control groups of its own
landlock           the wall between the session and whoever is outside, and around files
file_tree          what is on the disk where file rules part
ptrace             stops another thread, reads and changes it, and lets it go
registers          pure: the registers of a stopped thread, by machine
memory             strings and arrays of another process
file_state         what statx tells of a file, without asking who serves it
paths              which file a path means to another process
pinned_path        opens a path later exactly as it was before
mounts             which file systems answer by themselves
foreign_fds        descriptors of other processes, duplicated and closed
proc_files         files below a /proc that nobody can put another one over
procfs             what /proc says of a process
presence           a lock on a directory that says that a process attends to it
process            children, descendants, the end of a whole tree
frozen             a whole tree stands still, and goes on
supervisors        the supervisors of a user's sessions: found, signalled, ended by force
death              an end by a signal, without a core
pidfd              signals to a process that is held, and its end
pidns              numbers that a process in another pid namespace uses
sigfd              signals as readable events, with their sender
waits              how long a poll may wait
peer               which process connected to a socket or sent a signal, and whether to serve it
listeners          which process answers at a port of this machine
memory_library     extension modules that are loaded from memory
own_environment    variables that /proc no longer shows of our own processes
removal            the end of a folder in which anybody may have put anything
rights        whether another process has the rights that this one has
descriptors        sigwrap's own descriptors: inherited ones, pipes, plain files
limits             the caller's limits, which are meant for COMMAND alone
stderr_lines       lines on standard error: sigwrap's own, and those for a process
terminals          the terminals that sigwrap speaks on, and the processes that read them
terminal_typists   programs that could type on our terminal for the session
execs              what an exec would run, what it did run, and another in its place
sockets            what sockets of others are, whom they are to reach, and that being done
files              calls that change files by their paths: what they ask for, and where that lies
signals            what a signal call asks for, whom it would reach, and sending it
"""
