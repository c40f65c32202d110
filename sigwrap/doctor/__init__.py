"""Check what sigwrap can do on this machine, by trying each feature.

items   pure: the items, what is lost without each, and what to do
output  pure: findings as lines, as JSON and as an exit status
checks  checks of what a run needs from the kernel, and of what it finds
trials  every check in its order, each in a child process, and a whole test run
"""
