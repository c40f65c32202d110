"""Connections, datagrams and listening sockets.

judge    pure: the mediator of a call on a socket
call     decodes a call, and makes it on a duplicate of the socket, in the caller's place
look     the facts of a call, such as the process that it would reach
handler  gathers the facts for the mediator, and carries its effects out
peers    the other end: its host names, and the process that listens there
"""
