"""Commands whose input and output are recorded: the supervisor's side of their stubs.

recordings   which stubs there are, how one is started, what the child of each may exec
recording    one recorded command: its pipes, its stub, the frames between them
"""
