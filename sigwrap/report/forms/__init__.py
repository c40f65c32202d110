"""The folds of a session in each form that people and programs read.

verdict       how the session ended, in a sentence
verification  whether a log is what its writer wrote
text          the report for a terminal
tree          the process tree for a terminal
markdown      the report for a CI job's summary
rules         proposed rules as a part of a policy
layout        lines and color for a terminal
documents     the same reports as JSON
sessions      the list of sessions for a terminal
page          the report as one HTML file with some thousand events, from page_parts
what_if       what another policy would have decided, in each form
detail        one event in a few words, or as a line while a session runs
times         moments, spans and sizes
"""
