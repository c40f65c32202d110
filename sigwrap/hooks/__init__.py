"""A tool call of an agent, judged before it happens: by the rules that a run goes by, with nothing
run.

Pure: what has to be looked up on the machine is handed in (cli/hook_facts.py looks it up).

formats         each program's own format: what it says of a call, and how it is answered
calls           a tool call, to what it would do
shell_line      a shell line, to the commands in it and to what isn't known of it
shell_tree      its syntax tree, and whether that can be relied on
shell_visit     its statements, and the folders in which they run
shell_commands  its simple commands: a program, or what the shell does itself
evaluated       which values a shell evaluates
shells          which words are a line for another shell
wrapped         what stands behind env, sudo and xargs
started         what strace, su, ssh, git and others run, read from their words
starters        where that stands, a table
git_starters    its rows for git
option_starters  its rows for programs with an option that runs another one
starter         a row of it
option_words    options and operands told apart
git_settings    what git runs by a setting
variables       what a variable has a program run
words           what a word comes to before it runs
line_targets    files and addresses that a line shows, and what the policy decides on them
judged_line     the decisions of a policy on all that is in a line
verdict         of several answers the strictest, and why
settings        an agent's settings with the hook in them, and without
json_text       a JSON text that is changed in one place
"""
