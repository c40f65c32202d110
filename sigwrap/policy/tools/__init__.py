"""The work of `sigwrap policy`.

show          a policy as it takes effect, as text that loads again
renamed       old keys, written in the new way
explain       the rule that decides a request, and why
cases         the `tests:` of a policy, and rules that would make a base laxer
starter       a first policy for a project
literal       words of a process as YAML and as globs
draft         proposed rules before they have names
suggest       rules that would change the decision about a recorded request
connections   network rules for recorded connections
again         recorded requests, each decided once
learn         a policy with rules for what sessions denied or asked about
generate      a policy of the programs, subcommands, signals and hosts of sessions
pin           a policy that denies tools after their files have changed
shipped       the check of the shipped policies, when sigwrap is built
"""
