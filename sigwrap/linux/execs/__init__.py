"""An exec as the kernel does it.

look          the facts of an exec
asked         what its arguments say
executable    what it would run: the file, its interpreters, what a wrapper wraps
search        where the command is that a wrapper wraps
content       what is in a file: how it begins, and its digest
script        a script's first line, and its interpreter's arguments
image         what the kernel loaded, held against what was judged
restage       putting another command into a caller's own call
environment   the environment of a replacement, put onto its own stack
"""
