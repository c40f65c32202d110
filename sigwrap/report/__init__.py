"""What a log says, for people and for programs: folds over events, and what renders them.

verify      is the log what its writer wrote?
summary     what happened, in bounded memory
tree        the process tree, of which a summary has the lines
why         who ended a process: a fold over the events
cause       the causes that it finds, and their sentences
tally       counts of things whose number is not known, in bounded memory
metrics     decisions as metrics for Prometheus
text        the report for a terminal
sessions    the list of sessions for a terminal
documents   the same reports as JSON
export      events as JSON lines for other programs
replay      events in their rhythm, and the state after one of them
detail      an event in a few words
times       moments and spans
style       colour
reference   docs/events.md from the registry of events
"""
