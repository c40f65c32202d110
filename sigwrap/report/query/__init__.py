"""SQL over logs: what happened as tables, which a query's database is filled with.

The database is plain sqlite3. sqlite-utils was tried for it: filling took 4.4 times as long, its
import 115 ms, and with what it imports (click, pluggy, dateutil) it is 0.5 MB of the one-file
binary, which has 0.1 MB left. The tests read what `sigwrap export` writes with it.

columns     a column, how its value comes from what happened, and those that several views have
views       every view, with its columns
rows        the rows of views, from the events of one session
processes   a fold: a process from its first event to its last
values      anything of a payload as a value that SQLite keeps
database    the temporary database: made, filled, and then only read
problems    what is wrong with somebody's SQL, in a line
forms       a result as a table, CSV or JSON
reference   docs/query.md from the views
"""
