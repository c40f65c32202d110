"""What a run uses of modules of the standard library that it can't wait for: each of these takes a
tenth of the time to import, and is what its namesake is in all that sigwrap uses of it.

enum         enumerations, without enum
signal       signals, without the enumerations of their numbers
socket       sockets, without files and host names
re           regular expressions, compiled when first needed
json         JSON is written; only what reads it imports json
digests      hashlib's, without OpenSSL
sqlite3      SQLite
contextlib   suppress
functools    caches
collections  deque, Counter
"""
