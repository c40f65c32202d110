"""Sockets of others: what they are, whom they are to reach, and that being done for them.

address          what an address in a caller's memory stands for
asked            what a call asks of a socket, copied out of its caller's memory once
diag             what the kernel tells of a unix socket, asked for by its number
tcp_diag         whose a TCP connection is, asked for by its addresses
look             whom it would reach: the facts that it is judged by
places           sockets that a policy keeps, by what they are
own_connections  connections to sigwrap's own sockets, made in somebody's place
own_servers      servers of the session itself
ours             a duplicate in our hands: what it is, and calls on it
control          what goes with a message
rights           a thread of ours takes a caller's rights
"""
