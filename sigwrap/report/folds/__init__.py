"""What happened in a session: folds over its events, in memory that doesn't grow with them.

summary      all of a report, from the folds below
steps        what the agent did: tool calls, or the command's children, and what ran below
discards     commands that may have discarded uncommitted changes
attention    what one would act on first, in groups
handed       work that was handed to servers outside of the session
incidents    what happened to the session itself
selection    a part of a session
tree         the process tree
asked        what somebody was asked about
written      what was written, made and deleted, by folder
why          who ended a process
lives        which processes live, what they run, and what was sent to them
measures     what was done to the whole tree: interrupts, limits, the kill switch, agent signals
command_end  how the command ended, once the session has
cause        the causes that are found, and their sentences
ending       how a log ends: at its session's end, in the middle, or not yet
metrics      decisions as metrics for Prometheus
tally        counts of things whose number is not known, in bounded memory
"""
