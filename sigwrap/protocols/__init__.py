"""Messages between two processes of sigwrap, both ends of each.

front           the front process and the supervisor
joined          a command that joins a session, and that session
stub            a stub and the supervisor
control         `sigwrap approve` and others, or a hook in the session, and the supervisor
control_client  asks all running sessions at once by the control protocol
left_sockets    the sockets of sessions whose supervisor was killed
"""
