"""The event store: one append-only, hash-chained log per session, and nothing else is state.

SessionLog    the writer: append records an event, fold moves it into the database
Session       the reader: events of a running, ended or dead session
default_store where the logs lie
"""
