"""Pure: decide about requests and about the end of a run. No kernel, no file, no clock.

A mediator is a generator: facts in, effects out, replies in (effects.py).

effects         what mediators yield, and the replies that they get
facts           facts that several mediators share
exec            an exec, from the request to its outcome
exec_facts      what the exec would run, or why that is unknown
exec_question   the approval request for an exec, and the check before an approved exec runs
exec_events     the events of an exec
retries         denied execs that repeat one in the next directory of PATH
repeats         execs that may repeat an earlier one without a new judgement
exit_event      the event of a process's end
approved_scripts  the second exec of an approved script
signal          a signal, to each of its targets
signal_facts    how a call names its target, and which processes it would reach
signal_rules    judges one signal to one target, and makes its event
signal_texts    texts about a signal for the approver and the denied sender
fork            limits on new processes
network         connections, datagrams and socket addresses
files           calls that change audited files, and files that the kernel has probably refused
refusal         requests that no mediator decides
usage_limits    limits on processor time and memory, and when to look next
log_budget      the size limit of a session's log
run_end         every reason to end a run, and the steps that follow
remote_switch   the remote kill switch: its answers and missed polls
heartbeat       detects a stuck supervisor
interrupts      Ctrl+C: the front process's state machine
diagnosis       the state of a session, as an event and as lines
watch           which events are attempts on sigwrap, and which are shadows
lineage         parents, depths, and the type of a target to its sender
headcount       an upper bound on the number of processes
questions       approval requests: open, answered and forgotten
masking         secrets in arguments
wording         the line that a denied caller reads
"""
