"""What the command is started from: its program, its environment, and the policy it runs under.

command        finds the command's program, and executes it as if sigwrap were not there
own_code       loads all code before the command starts
own_files      finds files of sigwrap that the session can change, or has changed
onefile        PyInstaller's one-file packaging: its folder, its outer process, its variables
policy_files   policies by name or file: the only part that reads them
"""
