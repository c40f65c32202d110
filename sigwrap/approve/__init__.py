"""Approval requests: asked, answered and remembered.

requests         pure: open and settled requests, and what a waiting caller reads
approvals        asks, lists and answers requests while everything else goes on
typists          programs that could type an answer for the session
terminal_prompt  asks on the terminal, which the command uses too
wording          a request as the terminal, a list and the log show it, and its answers
control_socket   the session's control socket, its messages, and the lock of an approver who watches
control_client   asks all running sessions of a store; sockets whose session has ended
"""
