"""Words on the command line, lines on the terminal.

app        the typer application: every command, and how errors become lines
run        `sigwrap -- COMMAND`, which skips typer where the line is plain
forward    `sigwrap-forward`
reading    sessions, report, replay, verify
output     the one place that prints
"""
