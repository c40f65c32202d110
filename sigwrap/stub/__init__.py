"""The stub that stands in for a command whose input and output are recorded.

command    starts the command
stand_in   passes bytes, signals and the end on
"""
