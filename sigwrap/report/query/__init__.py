"""SQL over logs: events as tables.

database    the temporary database: views over the events of some sessions, read by SQL
problems    an error of SQLite as one line that says what would be right
forms       a result as a table, CSV or JSON
reference   the list of views, and the tables of docs/query.md
"""
