"""sigwrap policy: parse, call, print.

commands   every command, and its group
reading    list, show, diff, schema, check, try
explaining  explain
writing    init, pin, learn
shared     arguments of several commands, loading a policy, also of a session, and results as JSON
"""
