"""Interfaces of the kernel, and the facts for mediators. All ctypes code is here. An errno is
translated once, here.

libc               the calls Python lacks
bpf                the seccomp filter as a program, from the table of calls
seccomp            installing the filter, and the listener's ioctls
cgroups            sigwrap's cgroups, and those by which a process could kill others
usage              resource use of the process tree, from /proc and from cgroups of its own
landlock           the session's Landlock domain: signals, sockets and files
file_tree          names and links on the disk that file rules depend on
ptrace             stops another thread, reads and changes it, and releases it
registers          pure: the registers of a stopped thread, by machine
memory             strings and arrays of another process
file_state         a file's state from statx, without a request to its server
paths              resolves paths as another process sees them
pinned_path        opens a path later exactly as it was before
mounts             local file systems, which answer at once
foreign_fds        duplicates of other processes' descriptors
proc_files         files below a /proc that no process in a session can mount over
procfs             a process as /proc shows it
presence           a lock on a directory, held while a process uses it
process            children, descendants, the end of a whole tree
frozen             stops and continues a whole process tree
supervisors        finds, signals and kills the supervisors of a user's sessions
death              an end by a signal, without a core
pidfd              signals to a process by its pidfd, and its end
pidns              translates pids of another pid namespace
sigfd              signals as readable events, with their sender
waits              limits for polls and for calls that may block
peer               the process at a socket or behind a signal, and whether to serve it
listeners          the process that listens at a local port
memory_library     extension modules that are loaded from memory
own_environment    erases variables from /proc for our own processes
removal            empties directories that other processes may have filled
rights             compares the rights of another process with our own
descriptors        sigwrap's own descriptors: inherited ones, pipes, plain files
limits             the caller's limits, which the command gets back
stderr_lines       lines on standard error: sigwrap's own, and those for a process
terminals          sigwrap's terminals, and the processes that read them
terminal_typists   programs that could type on our terminal for the session
execs              execs: their programs, the loaded program, and replacements
sockets            calls on sockets: their targets, and the call made for the caller
files              calls that change files by their paths, and where these lead
signals            signal calls: their targets, and the signal sent for the caller
reference          docs/calls.md
"""
