"""What this machine can do for a run, each by trying it.

items      pure: the items, what is lost without each, and what to do
told       pure: findings, as lines, as JSON, and as an exit status
trials     every trial, in its order
aside      a trial in a process of its own, within bounded time
start      what a run's own start has to get from the kernel
around     what a run finds around it: /proc, limits, folders, terminals
temporary  the folder that the binary unpacks to
rehearsal  a whole run, with a store that is removed again
"""
