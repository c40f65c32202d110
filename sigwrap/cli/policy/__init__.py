"""sigwrap policy: parse, call, print.

commands   every command, and its group
reading    list, show, diff, schema
checking   check, try, test
explaining  explain
writing    init, pin
learning   learn
shared     arguments of several commands, loading a policy, also of a session, and results as JSON
"""
