"""Words on the command line, lines on the terminal.

main          `sigwrap`: starts a run whose line is plain; hands every other line to typer
run_options   the one table of run options, and the reader of a plain line
run           a run, from its settings to its exit status
app           typer's application: every command, and how an error becomes a line
group         commands under one name, and what is said where a line names none of them
run_command   typer's `run`, made from the table of run options
options       options that several commands share: --store, --json, SESSION
reading       sessions, report, replay, verify
approvals     approvals, approve, deny
control       which running session is meant, and what its refusal says
signal        signal
killswitch    killswitch on, off, status
why           why
export        export
policy        policy check, show, explain, test, pin, generate
tool_files    the files that policy pin and explain look at
forward       `sigwrap-forward`
stub          `sigwrap-stub`
output        the one place that prints
"""
