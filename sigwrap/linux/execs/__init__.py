"""An exec as the kernel does it.

look          the facts of an exec
executable    what an exec would run: the file, its interpreters, what a wrapper wraps
script        a script's first line, and its interpreter's arguments
content       what is in a file, so that a change of it shows
image         what the kernel loaded, held against what was judged
restage       putting another command into a caller's own call
environment   the environment of a replacement, put onto its own stack
"""
