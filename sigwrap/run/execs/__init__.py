"""The edge of the exec mediator.

execs         gathers the facts of an exec, and carries out the effects that only execs have
holdings      what one exec holds until it is over
readings      what is read of an exec besides its facts
replacements  what runs in the place of an exec
tracer        holds each exec that goes on until it has succeeded or failed
traced        execs of callers that another process of the session traces
repeated      execs of plain files that have run before
"""
