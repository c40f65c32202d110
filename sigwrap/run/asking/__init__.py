"""Approval requests.

approvals         the open requests: asked, listed, answered
approvers         who can answer one now
wording           a request on the terminal, in a list, in a notification, in the log
terminal_prompt   asks on the controlling terminal, which the command uses too
terminal_input    the terminal's modes during a request, and the lines that answer it
control_socket    takes answers from other terminals and pages; sockets that listen
"""
