"""Signals: what a call asks for, which processes it reaches, and whether it may.

facts    pure: how a call names its target; texts about a signal
judge    pure: the whole story of a signal, to each of its targets
rules    pure: judges one signal to one target, and makes its event
handler  gathers the facts for the judge, and carries its effects out
call     decodes a call: its signal, its target
targets  the process with a given number, and its relation to the sender
send     sends for a caller, with no more rights than it has
"""
