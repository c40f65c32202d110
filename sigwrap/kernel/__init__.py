"""Use the kernel's interfaces. Wrappers that decide nothing; only this folder uses ctypes. Each
errno is translated once.

libc         calls that Python lacks, and waits that end
seccomp      compiles the filter from the table of calls, installs it, makes the listener's calls
landlock     the Landlock domain: keeps signals inside, and enforces file rules
ptrace       stops another thread, reads and changes its registers, and releases it
restage      puts another command and environment into a caller's own exec
procfs       /proc below a folder that no process can mount over, and what it shows of a process
process      ends, children, descendants, the end of a whole tree, pid namespaces, rights
peer         the process at the other end of a socket or signal; sockets, as the kernel tells them
memory       strings and arrays of another process
paths        resolves paths as another process sees them
file_state   statx(2) of a file without asking its file server; local file systems
descriptors  sigwrap's own descriptors, paths to open again, duplicates from other processes
signals      signals by pidfd, signals as events, what a process would do with one
limits       the caller's limits, which apply to the command alone; control groups
terminals    the terminals that sigwrap writes to, who reads them, and the lines written
"""
