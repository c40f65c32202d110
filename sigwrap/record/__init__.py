"""Commands whose input and output are recorded: a stub takes the command's place.

stand_in    the stub: it runs the command, and passes its streams through the supervisor
frames      the messages between the supervisor and a stub
recording   one recorded command: passes bytes on, and records each first
recordings  the stubs of a run: how one is started, and what its child may exec
"""
