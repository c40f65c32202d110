"""Judges a tool call of an agent before it happens, by the rules of a run; it runs nothing.

Pure: cli/hook_facts.py looks up what has to be looked up on the machine.

formats         each agent's own format: what a call says, and how it is answered
calls           a tool call, to what it would do
shell_line      what a shell line comes to
shell_words     reads its words: quotes, expansions, here-documents
shell_reader    reads it, and the lines of the shells that it starts
shell_statements  reads its statements, and the directories in which they run
shell_commands  reads its simple commands: a program, or a builtin
shells          shells, and which words of one are a line to run
wrapped         the command behind env, sudo and xargs
starters        what a program runs for its caller
git_words       git's settings and subcommand
variables       variables by which a program runs something else
words           a word, as far as it is known before it runs
line_targets    files and addresses that a line shows, and the policy's decisions on them
judged_line     the decisions of a policy on all that is in a line
verdict         the strictest of several answers, and why
settings        an agent's settings with the hook in them, and without
"""
