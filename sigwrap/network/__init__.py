"""Connections, datagrams and listening sockets.

judge      pure: the mediator of a call on a socket
request    decodes a call: what it asks of a socket, and what its address means
look       the facts of a call, such as the process that it would reach
duplicate  makes the call on a duplicate of the socket, in the caller's place
handler    gathers the facts for the mediator, and carries its effects out
peers      the other end: its host names, and the process that listens there
"""
