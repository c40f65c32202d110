"""A session that commands join, which outlives each of them.

joins         the supervisor's side: who may join, what the log has of it, when the session ends
fork_server   under the filter: forks and executes each command
"""
