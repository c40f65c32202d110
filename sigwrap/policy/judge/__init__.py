"""A policy's rules, and the engine that decides a request by them.

request      requests (CommandRequest, SignalRequest) and the Decision
rules        Policy and its rules, typed; limits on the process tree
engine       Engine: decide_command, decide_signal
layers       own rules that would weaken a base's rule do not apply
recorded     a request read back from its event
match        regular expressions, the paths and arguments that rules are held against, and which
             files arguments mean
files        file rules, and the sandbox rules that enforce them
globs        globs, and the programs that rules name
network      network rules: connections and listening sockets
subcommand   the first arguments that are no options
flags        which flags a command has, in any spelling
tools        which options of a tool take a value
file_words   which arguments and redirections a command reads or changes
environment  variables that the command does not get
loading      variables that make a program load code
system_folders  where the system's own programs are, and what shadows them on PATH
wrappers     commands that `env`, `nice`, `busybox`… run, and other spellings of a command
signals      names, numbers, groups
"""
