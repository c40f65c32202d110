"""Gather facts for the exec mediator, and carry out its effects.

execs         gathers the facts of an exec, and carries out effects
holdings      the state and resources of one exec
readings      reads what an approval request needs
replacements  prepares the program that runs in place of an exec
tracer        traces each exec that goes on, and verifies the loaded image
traced        execs of callers that another process of the session traces
repeated      execs of plain files that have run before
"""
