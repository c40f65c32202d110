"""sigwrap-forward.

forwarder   an init for one command: passes signals on, reaps orphans, keeps the exit status
"""
