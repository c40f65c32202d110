"""A policy's text, to rules: in this order.

document    a text to nodes with their places
yaml_text   YAML text to nodes, bounded
shapes      the shapes of values, and what a key declares
values      checked values to the fields of rules, and back
schema      every key of the language, once: checks, rules, docs and JSON Schema come from it
variables   ${PROJECT_ROOT} and its like
fill        texts with variables, filled in and checked
parts       what a file says, before it is put on its base
check       nodes against the schema, to plain values
build       checked values to rules, and what several keys together get wrong
beforehand  shipped policies, which were checked when sigwrap was built
parse       the whole of it, `extends` followed: text to Policy
texts       all that a policy was made of, as the log has it
lint        rules of a loaded policy that never match, or allow more than they say
"""
