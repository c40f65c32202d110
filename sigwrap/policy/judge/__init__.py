"""A policy's rules, and the engine that decides a request by them.

request      what is asked (CommandRequest, SignalRequest), and the Decision
rules        Policy and its rules, typed
engine       Engine: decide_command, decide_signal
layers       own rules that would weaken a base's rule do not apply
limits       the limits on the tree, where they meet an exec
recorded     a request as its event has it
named        what the rules name that deny, ask or replace
match        regular expressions and globs, linear in time
files        what may be done with files, and the walls that hold it
file_names   globs on names of files, without RE2
network      whom one may talk to, and where servers may be
socket_names  globs on sockets' paths and names, without RE2
subcommand   the first arguments that are no options
flags        which flags a command has, in any spelling
tools        which options of a tool take a value
paths        which files the arguments mean
file_words   which arguments and redirections a command reads or changes
environment  which variables COMMAND is not given
loading      variables that make a program load code
system_folders  where the system's own programs are
path_shadow  a program that is found along PATH before the system's
spellings    the same command by another spelling: `git-push`, `python3 -m pip`
wrappers     what `env`, `nice`, `busybox`… are about to run
signals      names, numbers, groups
"""
