"""The event store: one append-only, hash-chained log per session, and no other state.

writer       SessionLog: append records an event, fold moves it into the database
reader       Session: the events of a running, ended or dead session
catalog      lists sessions and files, and finds the session that a user means
maintenance  removes sessions; merges the log of a killed writer into one file
location     the place of the store, and the names of a session's files
folder       a directory of the store, held open
codec        encodes an event as a row, and back; limits its size
chain        each row's hash over all rows before it
journal      the file that an event is in first, for its writer and for readers
shared_log   a log to which several processes append in turn
schema       the SQL of a database: its table, and views for sigwrap query and other clients
killswitch   the kill switch as a file: its content, and whether to trust it
"""
