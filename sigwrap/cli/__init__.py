"""Words on the command line, lines on the terminal.

main          `sigwrap`: starts a run whose line is plain; hands every other line to typer
presets       an agent by its name alone
run_options   the one table of run options, and the reader of a plain line
run           a run, from its settings to its exit status
app           typer's application: every command, and how an error becomes a line
group         commands under one name, and what is said where a line names none of them
run_command   typer's `run`, made from the table of run options
examples      lines that teach, in every help
options       options that several commands share: --store, --json, SESSION
showing       what the commands that read logs have in common
pager         a text that is longer than the screen, in a pager
sessions      sessions
sessions_removal   sessions rm, prune
sessions_recovery  sessions recover
report        report
report_reading  what a report is made of
beside        a part of a command's work in a process beside it
replay        replay
verify        verify
chain_note    what is said on standard error of a log that was changed
approvals     approvals, approve, deny
watch         watch, and what approvals --watch shows
control       which running session is meant, and what its refusal says
signal        signal
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
doctor        doctor
several       the sessions that query and export read
whole_file    writes a file completely or not at all
progress      how far something long is
policy        the commands of sigwrap policy
completion    completion, and what its scripts ask
link          link: the names by which the program takes its other roles
man           the manual page
help          help: the pages of docs/
tool_files    the files that policy pin and explain look at
forward       `sigwrap-forward`
stub          `sigwrap-stub`
shell       `sigwrap-shell`, `sigwrap -c`, and the session that commands join
joining     runs a command in a session that is joined by name
output        the one place that prints
"""
