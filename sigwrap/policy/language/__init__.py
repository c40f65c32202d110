"""A policy's text, to rules: in this order.

document    a text to nodes with their places
yaml_text   YAML text to nodes, bounded
schema      every key of the language, once: checks, docs and JSON Schema come from it
network_default  what a closed network still allows
variables   ${PROJECT_ROOT} and its like
fill        texts with variables, filled in and checked
parts       what a file comes to before it is put on its base
check       nodes against the schema, to plain values
build       checked values to rules, and what several keys together get wrong
beforehand  shipped policies, which were checked before any run
parse       the whole of it, `extends` followed: text to Policy
texts       all that a policy was made of, as the log has it
lint        rules of a loaded policy that never match, or allow more than they say
"""
