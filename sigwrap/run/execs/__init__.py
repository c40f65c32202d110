"""The edge of the exec mediator.

execs         gathers the facts of an exec, and carries out effects
holdings      the state and resources of one exec
readings      reads what an approval request needs
replacements  prepares what runs in place of an exec
tracer        traces each exec that goes on, and verifies what was loaded
traced        execs of callers that another process of the session traces
repeated      execs of plain files that have run before
"""
