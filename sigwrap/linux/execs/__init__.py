"""Handle an exec as the kernel does it.

asked         its arguments and environment, from the caller's memory
content       the beginning of a file, its interpreter or ELF loader, and its digest
where         the root and directory of a caller, and whether a path means the same to sigwrap
commands      locations of commands, system commands, and commands that shadow them
ours          sigwrap's own facts: files that denying rules name, under other names
executable    what it would run: the file, its interpreters, commands inside wrappers
look          the facts of an exec
image         compares the loaded image with the judged one
tracing       which process traces a caller, and whether the caller stops for it after an exec
repeated      calls _repeated.c, for execs of plain files that have run before
waiting       the program that a process runs while its exec waits for an approval
restage       puts another command into a caller's own call
environment   the environment of a replacement, written to its stack, and its secrets
"""
