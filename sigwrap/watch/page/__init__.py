"""The page of `sigwrap serve`, and its server on loopback.

Supervised processes run as the same user and can connect. So the server first identifies the
process at the other end (peers), then checks what it asks (requests, gate), then answers (site).

requests    pure: the head and the order of a request, if it has one meaning only
gate        pure: code, cookie and token; which host, origin and method get an answer
answers     pure: answers, with the headers that every one has
peers       every process that holds the other end of a TCP connection
refusals    tells of refused processes, on standard error and in their session
listening   the socket: a port of 127.0.0.1, or a file
connection  one connection: one request, one answer, and the limits of both
streams     server-sent events for browsers
reports     the report of a session, made by another process
site        what is at which path
server      accepts connections and starts their threads, until a signal

What a browser loads is in parts.
"""
