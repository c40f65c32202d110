"""A session that commands join: it has none of its own, and outlives each of them.

fork_server   under the filter: forks and execs each command that joins
joins         the supervisor's side: who may join, what is recorded of it, and when it is over
calls         a command that joined, from its first message to its status
"""
