"""What tests of real processes share.

harness      Sigwrap: the program under test, as one user, with a store of its own
waiting      everything is awaited by its event: a line, a pidfd, a state
terminal     a pseudo-terminal, and a parent that keeps a job on it as a shell does
processes    the processes of a run, as the kernel shows them
programs     programs that tests run: scripts, and C compiled once
policies     policy files of one test
recording    a command that a policy records through a stub
long_session a log as long as one likes, of what a recorded session has in it
signal_lab   sessions made for signals, and receivers that say what has reached them
backstop     the kernel's limit on what a test may fork
bare_machine a root folder with little in it: no Python
github_runner what runs an action's steps
containers   docker's default capabilities and seccomp profile
service_manager what systemd does with a service
skips        a skip that nobody has allowed fails the run
"""
