"""Start the command: its program, its environment, and the policy it runs under.

command        finds the command's program, and executes it as if sigwrap were not there
child          the command's process, from its fork to its first exec
own_code       loads all code before the command starts
own_files      finds files of sigwrap that the session can change, or has changed
onefile        PyInstaller's one-file packaging: its directory, its outer process, its variables
policy_files   reads policies by name or file
"""
