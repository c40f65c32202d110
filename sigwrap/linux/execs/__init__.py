"""An exec as the kernel does it.

asked         its arguments and environment, as the caller's memory has them
content       how a file begins, its interpreter or ELF loader, and its digest
where         the root and directory of a caller, and whether a path means the same to sigwrap
commands      where commands are, which are the system's own, and which they shadow
ours          what sigwrap knows by itself: files that denying rules name, under other names
executable    what it would run: the file, its interpreters, what a wrapper wraps
look          the facts of an exec
image         what the kernel loaded, compared with what was judged
tracing       which process traces a caller, and whether the caller stops for it after an exec
repeated      the way to _repeated.c, for execs of plain files that have run before
waiting       the program that a process runs while its exec waits for an approval
restage       another command, put into a caller's own call
environment   the environment of a replacement, written to its stack, and its secrets
"""
