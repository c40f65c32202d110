"""The command line: commands, options, and what sigwrap prints.

main          `sigwrap`: starts a run or a hook at once; leaves other lines to typer
run_options   the line of a run: the table of its options, and the reader
run           a run, from its settings to its exit status
app           sigwrap as typer has it: the root of all commands, errors as one line
table         every command: its module and its line of help; old names
group         commands under one name, and the errors for an unknown one
run_command   typer's `run`, for the help, completion and the manual page
examples      examples for the help of each command
options       options that several commands share: --store, --format, SESSION
showing       color, width, pager and progress of the commands that read logs
sessions      sessions, and its rm, prune and recover
report        report
replay        replay
verify        verify
approvals     approve, deny, and the list of requests
watch         watch
control       finds a running session, and checks its replies
signal        pause, resume, stop, signal
killswitch    killswitch on, off, status
serve         serve: the page
why           why
query         query
hook          hook run, and the group of its commands
hook_call     judges a tool call, records it and answers, without typer
hook_log      the event of a judged tool call
hook_facts    what a hook looks up on the machine
install       hook install, hook uninstall: the hook in an agent's own settings
export        export
ship          ship
shipper       the process that --ship starts
lake          lake sql, lake report, lake compact
doctor        doctor
several       the sessions that query, export and ship read
whole_file    writes a file completely or not at all
policy        the commands of sigwrap policy
completion    completion, and the command that its scripts call
link          link: links by the names of the program's other roles
help          help, man: the pages of docs/, and the manual page
tool_files    the files that a command name leads to
forward       `sigwrap-forward`
stub          `sigwrap-stub`
shell       `sigwrap-shell`, `sigwrap -c`, and the session that commands join
joining     runs a command in a shared session
note_in_time  prints a line of a run or of the page, without waiting for its reader
output        the one place that prints
"""
