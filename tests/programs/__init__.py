"""Real programs, natively and under sigwrap: what they say, leave behind and end with is the same.

`make test-programs` runs them all and prints a table; a quick selection runs in `make test`.

program   what the entry of a program says
catalog   the entries, a file a program or a family
place     the folders and the user of a run, and what is set up once
running   one run, native or wrapped: what came of it
screen    what a person would see on a terminal
compare   whether a wrapped run came out as native ones do
selected  which entries, users, forms and policies are meant
table     what was found, for people
__main__  make test-programs
"""
