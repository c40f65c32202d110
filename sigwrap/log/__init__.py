"""The event log: one append-only, hash-chained log per session, and no other state.

writer       the one writer: record in the journal first, index when there is time
database     the database that the writer fills, which no other process can open
journal      how a journal is read, and the log that agents' hooks append to in turn
codec        how an event becomes a row and back, how large it may be, and the hash chain
chain        the hash chain, checked row by row
trace_context  the caller's TRACEPARENT, and the ids of a session's spans
schema       the database's SQL: one append-only table, and views
folder       a folder of the store, held open; the store's path and the files' names
reader       a session's log, whether its writer runs, has ended, or was killed
catalog      the sessions of a store: finds, merges and removes them
"""
