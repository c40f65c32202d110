"""Signals: what a call asks for, which processes it reaches, and whether it may.

facts     pure: a decoded call, its targets, built-in decisions, and the texts about them
judge     pure: the mediator of a signal, to each of its targets
call      decodes a call, and sends a signal with no more rights than the caller has
targets   resolves the processes and groups that a call reaches
handler   gathers the facts for the mediator, and carries its effects out; settled signals
owners    descriptors that signal an owner, and the foreground of terminals
restarts  repeats a call that SIGCHLD interrupts before the supervisor has received it
"""
