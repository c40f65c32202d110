"""Messages between two processes of sigwrap, both ends of each.

front           the front process and the supervisor
joined          commands that join a session, and that session
stub            a stub and the supervisor
control         `sigwrap approve` and its like, or a hook in the session, and the supervisor
control_client  the client of that: all running sessions at once
left_sockets    the sockets of sessions whose supervisor was killed
"""
