"""Judge and make calls on callers' sockets.

request    what a call asks of a socket, copied once from its caller's memory
look       the facts of a call, such as the process that it would reach
duplicate  calls on a duplicate of the socket
rights     a thread takes the caller's rights
diag       the kernel's facts about a unix socket or a TCP connection (sock_diag)
"""
