"""What COMMAND is started from: its program, its environment, and the policy it runs under.

command        finds COMMAND's program, and execs it as if sigwrap weren't there
own_code       loads all code before the command starts
own_files      finds files of sigwrap that the session can change, or has changed
onefile        what PyInstaller's one-file packaging adds to the environment, and must be taken out
policy_files   policies by name or file: the only part that reads them
"""
