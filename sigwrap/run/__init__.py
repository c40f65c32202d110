"""The loop that carries decisions out.

session         a session from its id to its sealed log
launch          from fork to COMMAND's first exec
supervisor      the life of a run: requests, ends, the front process
loop            descriptors and deadlines of one thread
recorder        the log as the gates see it
processes       the processes of the tree, held by pidfds
channel         what the front process and the supervisor tell each other

exec_gate       an exec, from the request to what becomes of it: exec_target finds out what would
                run, exec_verify holds it to that, exec_redirect puts another in its place
recording       commands whose input and output are recorded: the supervisor's side of their stubs;
                stub_program says how a stub is started
signal_gate     a signal likewise: signal_call reads it, signal_targets says whom it would reach,
                signal_effects carries out what the kernel can't be left to
caller_stderr   a denial's message, never at the price of waiting
approvals       requests that wait for a person: terminal_prompt asks here, control from elsewhere
"""
