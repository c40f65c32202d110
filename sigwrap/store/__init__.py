"""The event store: one append-only, hash-chained log per session, and no other state.

writer       SessionLog: append records an event, fold moves it into the database
reader       Session: the events of a running, ended or dead session
catalog      which sessions and files there are, and which session a user means
maintenance  removes sessions; merges the log of a killed writer into one file
location     where the store is, and which files belong to a session
folder       a directory of the store, held open
codec        an event as a row, and back; how large it may be
chain        each row's hash over all rows before it
journal      the file that an event is in first, for its writer and for readers
shared_log   a log to which one process after the other appends
schema       the SQL of a database: its table, and views for sigwrap query and other clients
killswitch   the kill switch as a file: who turned it on, and whether to believe it
"""
