"""Commands whose input and output are recorded: the supervisor's side of their stubs.

recordings     which stubs there are, and what the child of each may exec
stub_program   how a stub is started: program, arguments, environment
"""
