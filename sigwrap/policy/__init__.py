"""What may run and who may signal whom: a policy and a described request in, a decision out.

Nothing here touches the kernel, the clock or the process table, and only `sources` reads files.

problems    Place, Problem, InvalidPolicy: everything wrong with a policy, each with its line
document    YAML text -> nodes with places, bounded
schema      every key of the language, once; checks, docs and JSON Schema come from it
check       nodes against the schema -> plain values
variables   ${PROJECT_ROOT} and its like
build       checked values -> rules, and what several keys together get wrong
rules       Policy and its rules, typed
parse       text -> Policy, `extends` followed
sources     the shipped policies, and files

request     CommandRequest, SignalRequest -> Decision
signals     names, numbers, groups
subcommand  the first argument that is no option
wrappers    what `env`, `nice`, `busybox`… are about to run
match       regexes and globs, linear in time
engine      Engine.decide_command, Engine.decide_signal

lint        rules that can never fire, or allow more than they say
show        a policy as it takes effect
explain     why a request is decided as it is
cases       the `tests:` of a policy
generate    recorded events -> a policy that allows just them
reference   docs/policy.md and docs/policy.schema.json
"""
