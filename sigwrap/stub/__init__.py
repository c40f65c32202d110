"""What stands in for a command whose input and output are recorded.

command    from a fresh stub to the command that it stands in for
stand_in   bytes, signals and the end, between the stub's streams and the supervisor
"""
