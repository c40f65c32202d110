"""Requests for approval.

approvals         the requests that are open, and who may answer them
attendance        whether somebody would see them
listing           one of them, for whoever asks what waits
payloads          one of them and its answer, for the log
terminal_prompt   asks on the controlling terminal, which COMMAND uses too
terminal_modes    the modes in which it asks
terminal_answers  the words that answer
wording           a question as its reader sees it
control_socket    takes answers from elsewhere
named_socket      a socket in the store, which stays there
"""
