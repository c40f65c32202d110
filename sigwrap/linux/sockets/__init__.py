"""Sockets of callers: what a call asks of one, whom it would reach, and the call made in its place.

request    what a call asks of a socket, copied out of its caller's memory once
look       whom it would reach: the facts that it is judged by
duplicate  calls on a duplicate of the socket
rights     a thread takes the caller's rights
diag       what the kernel says of a unix socket or a TCP connection (sock_diag)
"""
