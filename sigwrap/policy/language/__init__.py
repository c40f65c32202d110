"""From a policy's text to its rules, in this order.

document    a text, its nodes with their places, and the parts that are made of them
yaml_text   YAML text to nodes, bounded
shapes      the shapes of values, what a key declares, and the fields that are made of it
schema      every key of the language, once: checks, rules, docs and JSON Schema come from it
fill        texts with variables, filled in and checked
check       checks nodes against the schema, and makes plain values
build       checked values to rules, and the checks that concern several keys
beforehand  shipped policies, which were checked when sigwrap was built
parse       all of these, with the bases that `extends` names: text to Policy
lint        rules of a loaded policy that never match, or allow more than they say
"""
