"""What `sigwrap policy` does with a policy, and the generated documents.

show          a policy as it takes effect, as text that loads again
renamed       old keys, written in the new way
explain       why a request is decided as it is
explain_file  why something may be done with a file
explain_network  why somebody may be talked to
weakened      rules that would make a base laxer
cases         the `tests:` of a policy
listing       policies in a line each
differences   what two policies do differently
starter       a first policy for a project
generate      recorded events to a policy of programs, subcommands, signals and hosts
connections   connections that were seen, to rules that are about them
written_folders  rules that allow writing where a session has written
literal       words of a process as YAML, as a glob, as a regular expression
draft         a rule that is proposed, and its line
destructive   denied actions that no proposed rule should allow
suggest       the rule that would change what was decided of a recorded request
together      the rules for requests of one kind, and how many they are for
by_name       commands whose name alone is no reason to allow them
wide          what a rule lets through beside what was recorded
again         recorded requests, each decided once
inserted      rules put before those of a policy's text
suggested     a policy with such rules, for what sessions were denied
pin           rules that deny a tool whose file is another than now
shipped       the check of the shipped policies, when sigwrap is built
reference     generates docs/policy-reference.md and docs/policy.schema.json
reference_notes  the text around the tables of docs/policy-reference.md
"""
