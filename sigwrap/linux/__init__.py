"""The only ctypes in sigwrap: what the kernel offers, with its errno translated once.

libc        the calls Python lacks, and the translation of their errno
bpf         the seccomp filter as a program (pure)
syscalls    the numbers of the mediated calls, by ABI (pure)
seccomp     installing the filter, and the listener's ioctls
memory      strings and arrays of another process
procfs      what /proc says of a process
process     parent-death signal, subreaper, pidfds, the end of a whole tree
sigfd       signals as readable events, with their origin
"""
