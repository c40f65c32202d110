"""Replace modules of the standard library that are slow to import. Each takes a tenth of the time,
and behaves the same for all that sigwrap uses.

enum         enumerations, without enum
signal       signals, without the enumerations of their numbers
socket       sockets, without files and host names
re           regular expressions, compiled when first needed
json         writes JSON; imports json only to read it
digests      hashlib's, without OpenSSL
sqlite3      SQLite
contextlib   suppress
functools    caches
collections  deque, Counter
"""
