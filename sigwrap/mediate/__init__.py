"""Pure: what is to happen with a request, and at the end of a run. No kernel, no file, no clock.

A mediator is a generator: facts in, effects out, replies in (effects.py).

effects         what mediators yield, and what they get back
facts           facts that more than one mediator gets
exec            an exec, from what the caller asked for to what came of it
exec_facts      what it would run, or why that is not known
exec_question   what somebody is asked about it, and whether that is what then runs
exec_events     the events of an exec
retries         denied execs that repeat one in the next directory of PATH
repeats         which execs may go on again without being judged again
exit_event      the event of a process's end
approved_scripts  what a yes to a script goes on to cover
signal          a signal, to each of its targets
signal_facts    how a call names its target, and which processes it would reach
signal_rules    judges one signal to one target, and makes its event
signal_texts    what an approver and a denied sender read about it
fork            a process that is about to be made
network         a connection, a datagram, or an address that a socket takes
files           calls that change audited files, and files that the kernel has probably refused
refusal         requests that no mediator decides
usage_limits    processor time and memory of the tree, and when to look again
log_budget      how much a session's log may take
run_end         every reason to end, and what happens then
remote_switch   what an answer of the remote kill switch says, and what follows from missed polls
heartbeat       whether the supervisor still goes on
interrupts      what Ctrl+C means: the front process's state machine
diagnosis       how a session stands, as an event and as lines
watch           which events are attempts on sigwrap, and which are shadows
lineage         which process is whose child, how deep, and what a target is to its sender
headcount       an upper bound on how many processes there are
questions       requests for approval as they are asked, answered and forgotten
masking         secrets in arguments
wording         the line that a denied caller reads
"""
