"""Requests for approval.

approvals         the requests that are open, and who may answer them
terminal_prompt   asks on the controlling terminal, which COMMAND uses too
wording           a question as its reader sees it
control_socket    takes answers from elsewhere
"""
