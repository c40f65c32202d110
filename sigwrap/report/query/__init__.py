"""SQL over logs: events as tables.

database    the temporary database: views over the events of some sessions, read by SQL
forms       a result as a table, CSV or JSON
"""
