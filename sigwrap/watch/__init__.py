"""A view of all sessions of a store, and the answers and orders that the user gives there.

board       pure: what the user sees at a moment, and can order
requests    approval requests, as sessions list them and in printable lines
documents   the same as JSON
source      follows the sessions, and makes the board
attendance  tells sessions that an approver is watching
followed    the log of a running session, as it grows
actions     carries orders out
notify      notifies of new approval requests
terminal    `sigwrap watch`
page        the page of `sigwrap serve`, and its server
"""
