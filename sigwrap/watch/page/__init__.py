"""The page of `sigwrap serve`, and its server on loopback.

Supervised processes run as the same user and can connect. So the server first identifies the
process at the other end (peers), then checks what it asks (messages, gate), then answers (site).

messages    pure: requests that have one meaning only, and answers with their headers
gate        pure: code, cookie and token; which host, origin and method get an answer
peers       every process that holds the other end of a TCP connection, and what is told of refusals
connection  one connection: one request, and one answer or a stream of events
site        what is at which path; the report of a session
server      the socket, its connections and their threads, until a signal

What a browser loads is in parts.
"""
