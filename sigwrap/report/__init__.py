"""What a log says, for people and for programs. Nothing here writes to a log.

folds       what happened: folds over events, in memory that doesn't grow with them
check       is the log what its writer wrote?
forms       what was folded, as text, JSON and so on
query       SQL over what happened
when        times of a session, as a user types them
export      events as JSON lines or CSV for other programs
reference   docs/events.md from the registry of events
"""
