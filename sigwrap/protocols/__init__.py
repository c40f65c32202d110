"""The protocols between processes of sigwrap, with both ends of each.

front           the front process and the supervisor
joined          commands that join a session, and that session
stub            a stub and the supervisor
control         `sigwrap approve` and other commands, and the supervisor
control_client  asks all running sessions of a store
tool_calls      a hook inside a session, and the supervisor
left_sockets    the sockets of sessions whose supervisor was killed
"""
