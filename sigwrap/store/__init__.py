"""The event store: one append-only, hash-chained log per session, and nothing else is state.

writer          SessionLog: append records an event, fold moves it into the database
reader          Session: the events of a running, ended or dead session
catalog         which sessions there are, and which one a user means
belongings      which files of a store belong to which session, and how to hold them
removal         removing sessions
recovery        the log of a killed writer, in one file again
location        where the store lies, and which files belong to a session
folder          the folder of these files, held open
codec           an event as a row, and back
bounds          how large an event is at most
chain           each row's hash over all rows before it
journal         the file that an event is in first
journal_reader  the journal as a reader sees it
shared_log      a log to which one process after the other appends
database        the SQLite database as a reader sees it
schema          the SQLite database as the writer makes it
views           the views over it, for sigwrap query and other SQLite clients
killswitch      the kill switch as a file: who turned it on, and whether that is to be believed
"""
