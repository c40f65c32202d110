"""Use Linux kernel interfaces, and collect facts for mediators. Only this package uses ctypes. It
translates each errno once.

libc               the calls that Python lacks
bpf                the seccomp filter as a program, from the table of calls
seccomp            installs the filter, and calls the listener's ioctls
cgroups            the cgroups of sigwrap, and writable ones that could kill other processes
usage              CPU time and memory of a tree, from /proc and control groups
landlock           the Landlock domain: keeps signals inside, and enforces file rules
file_tree          names and links on the disk that file rules are about
ptrace             stops another thread, reads and changes it, and releases it
registers          pure: the registers of a stopped thread, by machine
memory             strings and arrays of another process
file_state         statx(2) of a file, without asking its file server
paths              resolves paths as another process sees them
pinned_path        opens a path later exactly as it was before
mounts             local file systems, which answer at once
foreign_fds        descriptors of other processes, duplicated and closed
proc_files         files below a /proc that no process can mount over
procfs             facts about a process from /proc
presence           a lock on a directory that shows that a process uses it
process            children, descendants, the end of a whole tree
frozen             stops a whole tree, and continues it
supervisors        the supervisors of a user's sessions: finds, signals and kills them
death              an end by a signal, without a core
pidfd              signals to a process by its pidfd, and its end
pidns              process numbers in another pid namespace
sigfd              signals as readable events, with their sender
waits              how long a poll may wait
peer               which process connected to a socket or sent a signal, and whether to serve it
listeners          which process listens at a port of this machine
memory_library     extension modules that are loaded from memory
own_environment    removes variables of our own processes from /proc
removal            removes a folder that may contain anything
rights        whether another process has the rights that this one has
descriptors        sigwrap's own descriptors: inherited ones, pipes, plain files
limits             the caller's limits, which apply to the command alone
stderr_lines       lines on standard error: sigwrap's own, and those for a process
terminals          the terminals that sigwrap writes to, and the processes that read them
terminal_typists   programs that could type on our terminal for the session
execs              an exec's program, the loaded image, and replacements
sockets            a caller's sockets: what a call asks, which process it reaches, and the call
files              calls that change files by their paths: their requests and targets
signals            signal calls: their requests and targets, and sending
"""
