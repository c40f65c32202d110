"""The edge of the exec mediator.

execs    gathers the facts of an exec, and carries out the effects that only execs have
anew      what an exec would run, looked at anew for an answer
tracer   holds each exec that goes on until it has succeeded or failed
"""
