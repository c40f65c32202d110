"""The program that stands in for a command whose input and output are recorded.

stand_in   the stub: starts the command, and passes bytes, signals and the end
"""
