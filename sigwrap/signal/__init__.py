"""Signals: what a call asks for, which processes it reaches, and whether it may.

facts     pure: how a call names its target; decisions, events and texts about it
judge     pure: the mediator of a signal, to each of its targets
handler   gathers the facts for the mediator, and carries its effects out
call      decodes a call: its signal, its target
targets   the processes that a call would reach, and their relation to the sender
send      sends for a caller, with no more rights than it has
restarts  repeats a call that SIGCHLD interrupts before the supervisor has received it
"""
