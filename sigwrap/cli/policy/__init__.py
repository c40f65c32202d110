"""sigwrap policy: parse, call, print.

commands   every command, and its group
reading    list, check, show, diff, schema
judging    explain, test
shell_lines  explain: of a shell, each command in its line
writing    init, suggest, generate, pin
shared     arguments that several have, a policy by its name, and a result as JSON
recorded   the policy of a session
"""
