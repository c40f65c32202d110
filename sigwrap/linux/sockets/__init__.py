"""Sockets of others: what they are, whom they are to reach, and that being done for them.

address  what an address in a caller's memory stands for
"""
