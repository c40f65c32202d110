"""An exec as the kernel does it.

elsewhere     files that are not where sigwrap's own names lead
look          the facts of an exec
asked         what its arguments say
executable    what it would run: the file, its interpreters, what a wrapper wraps
where         in which root and folder it would run
search        where the command is that a wrapper wraps
content       how a file begins, and its digest
script        a script's first line, and its interpreter's arguments
ownership     whether a program is the system's own
shadows       which of the system's commands a program found along PATH has the name of
loading       what an exec's environment makes a program load
tracing       who traces a caller, and how far its exec has got
repeated      the way to _repeated.c, for execs of plain files that have run before
image         what the kernel loaded, held against what was judged
ours          what sigwrap knows of the file system by itself
twins         files that denying rules name, under other names
elf           which program an ELF file names as its interpreter
waiting       the program that a process runs while its exec waits for an approval
restage       putting another command into a caller's own call
secret        what a caller must not do to what holds a value of sigwrap's own
environment   the environment of a replacement, put onto its own stack
"""
