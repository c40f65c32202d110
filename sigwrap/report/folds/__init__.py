"""What happened in a session: folds over its events, in memory that doesn't grow with them.

summary    all of a report, from the folds below
steps      what the agent did: tool calls, or the command's children, and what ran below
attention  actions that were not simply allowed, discarded changes, work handed outside
incidents  what happened to the session itself
selection  a part of a session
tree       the processes: what each runs, what may explain its end, and their tree
written    files that were written, created and deleted, by folder
why        what ended a process
measures   what was done to the whole tree, and how the command ended by it
cause      the causes of an end, and their sentences
ending     how a log ends: at its session's end, in the middle, or not yet
metrics    decisions as metrics for Prometheus
bounded    collections that stay small
"""
