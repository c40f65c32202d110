"""The page of `sigwrap serve`, and its server on loopback.

Supervised processes run as the same user and can connect. So each connection is looked at first:
whose it is (peers), then what it asks (heads, gate), and only then what it gets (site).

bounds      how much of anything one client, and all together, may use
peers       who is at the other end, over TCP: every process that holds that socket
refusals    a peer from inside a session, told to that session and on standard error
heads       pure: whether the head of a request has one meaning only
gate        pure: code, cookie and token; which host, origin and method are let in
answers     pure: answers, with the headers that every one has
documents   pure: documents made fit for the page: printable, and of a bounded size
listening   the socket that is listened at: a port of 127.0.0.1, or a file
connection  one connection: one request, one answer
server      connections: who comes, and who goes where there are too many
helpers     threads for what may take its time
streams     browsers that are told what happens
site        what is at which path
orders      pure: what a POST asks for, out of its JSON
reports     the report of a session, made by another process
running     all of it together, until a signal

What a browser loads is in parts.
"""
