"""Calls that change files by their paths: what they ask for, and where that lies.

asked  what a call asks for, copied out of its caller's memory
known  what is at a path, by the kernel's caches alone
look   which files these are: the facts that it is judged by
"""
