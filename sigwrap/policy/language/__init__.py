"""From a policy's text to its rules, in this order.

document    a text to nodes with their places
yaml_text   YAML text to nodes, bounded
shapes      the shapes of values, and what a key declares
values      checked values to the fields of rules, and back
schema      every key of the language, once: checks, rules, docs and JSON Schema come from it
variables   ${PROJECT_ROOT} and other variables
fill        texts with variables, filled in and checked
parts       the contents of a file, before they are put on its base
check       checks nodes against the schema, and makes plain values
build       checked values to rules, and the checks that concern several keys
beforehand  shipped policies, which were checked when sigwrap was built
parse       all of these, with the bases that `extends` names: text to Policy
texts       the texts and variables of a policy, for the log
lint        rules of a loaded policy that never match, or allow more than they say
"""
