"""Check what sigwrap can do on this machine, by trying each feature.

items        pure: the items, what is lost without each, and what to do
output       pure: findings as lines, as JSON and as an exit status
child        run a check in a child process, within a bounded time
start        checks of what a run's start needs from the kernel
environment  checks of what a run finds: /proc, limits, directories, terminals
trials       every check in its order, and a whole test run
"""
