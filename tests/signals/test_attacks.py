"""A hostile process tries what it can: other ABIs, other routes, swaps, races, storms."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.signal_lab import Lab, python

ROUNDS = int(os.environ.get("SIGWRAP_TEST_ROUNDS", "10000"))
ENOUGH_S = 15 if "SIGWRAP_TEST_ROUNDS" in os.environ else 3
"""A race is given up then, on a machine with much else to do."""
OWN = "name: own, signals: ['@all'], target: [self, children, descendants], decision: allow"
WINDOWS_OUT = "name: out, signals: [WINCH], target: user, decision: allow"
"""With it, nothing in the kernel keeps signals inside."""

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")

FAMILY = """
import sys, threading
boxes = sys.argv[1]
block_all()
def family(attack):
    '''COMMAND has two children: a sibling that receives, and the attacker.'''
    box(boxes, "sibling"), box(boxes, "child")
    spawn(lambda: receive(boxes, "sibling"))
    def run():
        spawn(lambda: receive(boxes, "child"))
        names = {"child": ask(boxes, "child")[0], "sibling": ask(boxes, "sibling")[0]}
        attack(names)
    code = os.waitstatus_to_exitcode(os.waitpid(spawn(run), 0)[1])
    dismiss(boxes, "sibling"), dismiss(boxes, "child")
    raise SystemExit(code)
def arrived():
    return {name: ask(boxes, name)[1] for name in ("child", "sibling")}
"""


def _tells(lab: Lab, attack: str, *words: object, options: tuple[str, ...] = ()) -> Any:
    body = "".join(f"    {line}\n" for line in attack.strip().splitlines())
    text = f"{FAMILY}\ndef attack(pids):\n{body}\nfamily(attack)\n"
    return lab.tells(text, lab.boxes, *words, options=options)


def _blocked(lab: Lab) -> list[tuple[str, str, str]]:
    found = lab.payloads("signal_blocked")
    return [(each["syscall"], each["target_type"], each["rule_name"]) for each in found]


# Other ABIs


def test_x32_calls_are_refused_and_recorded(users_lab: Lab) -> None:
    lab = users_lab.under(OWN)
    told = _tells(
        lab,
        """
x32 = 0x40000000
results = [named(native(x32 | number, pids["sibling"], 9)) for number in (62, 200, 129, 512 + 12)]
results.append(named(native(x32 | 234, pids["sibling"], pids["sibling"], 9)))
tell([results, arrived()])
""",
    )
    assert told == [["ENOSYS"] * 5, {"child": [], "sibling": []}]
    assert len(lab.subject.events("abi_refused")) == 5


def test_upper_register_halves_hide_nothing(users_lab: Lab) -> None:
    lab = users_lab.under(OWN)
    told = _tells(
        lab,
        """
victim, garbage = pids["sibling"], 0x7eadbeef << 32
a, b = os.pipe()
results = [named(result) for result in (
    native(62, garbage | victim, garbage | 9),
    native(62, victim, garbage | 9),
    native(62, garbage | (-victim & 0xffffffff), 9),
    native(234, garbage | victim, garbage | victim, garbage | 9),
    native(424, garbage | os.pidfd_open(victim), garbage | 9, 0, garbage),
    native(72, garbage | a, garbage | 8, garbage | victim),
    native(101, 16, garbage | victim, 0, 0),
    native(101, 0x4206, garbage | victim, 0, 0),
)]
tell([results, arrived()])
""",
    )
    # The third names the group of that number: there is none.
    results = ["EPERM"] * 8
    results[2] = "ESRCH"
    assert told == [results, {"child": [], "sibling": []}]
    assert {kind for _, kind, _ in _blocked(lab)} == {"siblings"}


# By way of a descriptor's owner

OWNERS = """
import fcntl, socket
def pid_words(kind, pid): return struct.pack("ii", kind, pid)
SETOWNS = {
    "F_SETOWN": lambda fd, pid: native(72, fd, 8, pid),
    "F_SETOWN_EX": lambda fd, pid: native(72, fd, 15, pid_words(1, pid)),
    "F_SETOWN_EX thread": lambda fd, pid: native(72, fd, 15, pid_words(0, pid)),
    "FIOSETOWN": lambda fd, pid: native(16, fd, 0x8901, struct.pack("i", pid)),
    "SIOCSPGRP": lambda fd, pid: native(16, fd, 0x8902, struct.pack("i", pid)),
    "i386 F_SETOWN": lambda fd, pid: i386(55, fd, 8, pid),
    "i386 fcntl64": lambda fd, pid: i386(221, fd, 8, pid),
    "i386 F_SETOWN_EX": lambda fd, pid: i386(221, fd, 15, low(pid_words(1, pid))),
    "i386 FIOSETOWN": lambda fd, pid: i386(54, fd, 0x8901, low(struct.pack("i", pid))),
}
if not has_i386():
    SETOWNS = {name: call for name, call in SETOWNS.items() if not name.startswith("i386")}
def by_owner(call, pid, number):
    '''A descriptor that signals its owner, with one byte to wake it.'''
    one, other = socket.socketpair()
    result = call(one.fileno(), pid)
    named_number = fcntl.fcntl(one, 10, number)
    fcntl.fcntl(one, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    other.send(b"x")
    return named(result)
"""


@pytest.mark.parametrize("rules", [(OWN,), (OWN, WINDOWS_OUT)], ids=["walled", "unwalled"])
def test_no_owner_but_who_may_be_killed(users_lab: Lab, rules: tuple[str, ...]) -> None:
    lab = users_lab.under(*rules)
    outside = lab.outsider()
    told = _tells(
        lab,
        OWNERS
        + """
outside = int(sys.argv[2])
results = {name: {who: by_owner(call, pid, 9)
                  for who, pid in (("sibling", pids["sibling"]), ("outside", outside))}
           for name, call in SETOWNS.items()}
own = {name: [by_owner(call, pids["child"], 34), [a["signal"] for a in arrived()["child"]]]
       for name, call in SETOWNS.items()}
groups = {name: [by_owner(call, -os.getpgid(outside), 9), by_owner(call, -os.getpgrp(), 9)]
          for name, call in SETOWNS.items() if name not in ("F_SETOWN_EX", "F_SETOWN_EX thread",
                                                            "i386 F_SETOWN_EX")}
tell([results, own, groups, arrived()])
""",
        outside.pid,
    )
    results, own, groups, late = told
    assert all(each == {"sibling": "EPERM", "outside": "EPERM"} for each in results.values()), told
    assert all(each == [0, [34]] for each in own.values()), own
    assert all(each == ["EPERM", "EPERM"] for each in groups.values()), groups
    assert late == {"child": [], "sibling": []}
    assert outside.arrived() == [] and outside.lives
    walled = "landlock_signal_scope"
    (started,) = lab.subject.events("session_started")
    assert (walled in started.payload["capabilities"]) == (len(rules) == 1)


def test_owners_are_set_as_the_kernel_would(users_lab: Lab) -> None:
    lab = users_lab.under(OWN)
    told = _tells(
        lab,
        OWNERS
        + """
os.setpgid(0, 0)
os.setpgid(pids["child"], os.getpgrp())
one, _ = socket.socketpair()
fd = one.fileno()
def owner():
    room = ctypes.create_string_buffer(8)
    native(72, fd, 16, room)
    kind, pid = struct.unpack("ii", room.raw)
    who = {0: "nobody", os.getpid(): "me", pids["child"]: "child"}.get(pid, pid)
    return [kind, who]
def after(result):
    return [named(result), owner()]
told = []
for call in (
    lambda: native(72, fd, 15, pid_words(2, os.getpgrp())),
    lambda: native(72, fd, 15, pid_words(1, 0)),
    lambda: native(72, fd, 8, -os.getpgrp()),
    lambda: native(16, fd, 0x8901, struct.pack("i", 0)),
    lambda: native(16, fd, 0x8901, struct.pack("i", -os.getpgrp())),
    lambda: native(16, fd, 0x8902, struct.pack("i", pids["child"])),
    lambda: native(72, fd, 8, 0),
    lambda: native(72, fd, 15, pid_words(1, pids["child"])),
    lambda: native(72, fd, 15, pid_words(1, -os.getpgrp())),
    lambda: native(72, fd, 15, pid_words(2, -pids["child"])),
    lambda: native(72, fd, 15, pid_words(7, pids["child"])),
    lambda: native(72, fd, 15, 8),
):
    told.append(after(call()))
tell(told)
""",
    )
    process, group = 1, 2
    assert told == [
        [0, [group, "me"]],
        [0, [process, "nobody"]],
        [0, [group, "me"]],
        [0, [process, "nobody"]],
        [0, [group, "me"]],
        [0, [process, "child"]],
        [0, [process, "nobody"]],
        [0, [process, "child"]],
        ["ESRCH", [process, "child"]],
        ["ESRCH", [process, "child"]],
        ["EINVAL", [process, "child"]],
        ["EFAULT", [process, "child"]],
    ]


# Swapped while it is decided


@pytest.mark.parametrize("by", ["pidfd", "setown_ex", "ioctl"])
def test_what_is_swapped_meanwhile_reaches_nobody_else(
    users_lab: Lab, compiled: Path, by: str
) -> None:
    lab = users_lab.under(OWN)
    rounds = ROUNDS if by == "pidfd" else ROUNDS // 5
    text = (
        FAMILY
        + """
import subprocess
spawn(lambda: receive(boxes, "sibling"))
def attacker():
    spawn(lambda: receive(boxes, "child"))
    pids = [str(ask(boxes, name)[0]) for name in ("child", "sibling")]
    os.execv(sys.argv[2], [*sys.argv[2:], *pids])  # so that the child is its own
code = os.waitstatus_to_exitcode(os.waitpid(spawn(attacker), 0)[1])
late = arrived()
dismiss(boxes, "sibling"), dismiss(boxes, "child")
tell(late)
raise SystemExit(code)
"""
    )
    done = lab.run(text, lab.boxes, compiled / "swap", by, rounds, ENOUGH_S)
    (let, refused, wrong), late = map(json.loads, done.stdout.splitlines())
    assert wrong == 0
    assert let and refused  # both were tried
    assert late["sibling"] == []
    assert bool(late["child"]) == (by == "pidfd")


def test_pidfds_of_every_kind(users_lab: Lab) -> None:
    """A folder of /proc, a process group's, a thread's; one got before; a file that is none."""
    lab = users_lab.under(OWN)
    told = _tells(
        lab,
        """
def by(fd, flags=0):
    return named(native(424, fd, 34, 0, flags))
child, sibling = pids["child"], pids["sibling"]
folder = {who: os.open(f"/proc/{pid}", os.O_RDONLY) for who, pid in pids.items()}
task = os.open(f"/proc/{sibling}/task/{sibling}", os.O_RDONLY)
told = {
    "folder": [by(folder["child"]), by(folder["sibling"])],
    "folder of a thread": by(task),
    "group of its leader": by(os.pidfd_open(sibling), 4),
    "thread": by(os.pidfd_open(sibling, os.O_EXCL)),
    "thread, flag": [by(os.pidfd_open(sibling), 1), by(os.pidfd_open(child), 1)],
    "process, flag": [by(os.pidfd_open(sibling), 2), by(os.pidfd_open(child), 2)],
    "file": by(os.open("/dev/null", os.O_RDONLY)),
}
tell([told, arrived()])
""",
    )
    results, late = told
    assert results["folder"][1] == "EPERM"
    assert results == {
        "folder": ["EPERM", "EPERM"],  # whose it is can't be told for sure
        "folder of a thread": "EPERM",
        "group of its leader": "ESRCH",  # it leads none
        "thread": "EPERM",
        "thread, flag": ["EPERM", 0],
        "process, flag": ["EPERM", 0],
        "file": "EPERM",
    }
    assert late["sibling"] == []
    assert [each["signal"] for each in late["child"]] == [34, 34]


def test_a_pidfd_that_was_handed_in(users_lab: Lab) -> None:
    lab = users_lab.under(OWN)
    outside = lab.outsider()
    ours = os.pidfd_open(os.getpid())
    held = os.pidfd_open(outside.pid)
    try:
        text = "import sys\ntell([named(native(424, int(fd), 9, 0, 0)) for fd in sys.argv[1:]])"
        done = lab.subject.run("--", *python(text, held, ours), pass_fds=(held, ours))
    finally:
        os.close(held)
        os.close(ours)
    assert json.loads(done.stdout) == ["EPERM", "EPERM"], done.stderr
    assert outside.lives and outside.arrived() == []
    assert len(_blocked(lab)) == 2


def test_a_magic_pidfd_of_oneself_is_judged(users_lab: Lab) -> None:
    """With its flag it reaches the whole group, siblings too."""
    lab = users_lab.under(OWN)
    told = _tells(
        lab,
        """
os.setpgid(0, 0)
own = os.getpid()
os.setpgid(pids["child"], own)
results = [named(native(424, -10001, 34, 0, flags)) for flags in (0, 4)]
mine = [each["signal"] for each in drain()]
tell([results, mine, [each["signal"] for each in arrived()["child"]]])
""",
    )
    assert told == [[0, 0], [34, 34], [34]]
    events = lab.payloads("signal_sent")
    assert Counter(each["target_type"] for each in events) == {"self": 2, "children": 1}


def test_a_magic_pidfd_does_not_reach_a_sibling(users_lab: Lab) -> None:
    lab = users_lab.under(OWN)
    text = (
        FAMILY
        + """
ready, going = os.pipe(), os.pipe()
def leading():
    os.setpgid(0, 0)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.write(ready[1], b"x")
    os.read(going[0], 1)
    native(424, -10001, 34, 0, 4)
    os._exit(0)
first = spawn(leading)
os.read(ready[0], 1)
def following():
    os.setpgid(0, first)
    receive(boxes, "sibling")
spawn(following)
ask(boxes, "sibling")
os.write(going[1], b"x")
status = os.waitpid(first, 0)[1]
tell([os.WTERMSIG(status), ask(boxes, "sibling")[1]])
dismiss(boxes, "sibling")
"""
    )
    assert lab.tells(text, lab.boxes) == [34, []]
    assert ("pidfd_send_signal", "siblings", "builtin:default") in _blocked(lab)


def test_a_siginfo_of_ones_own_arrives_as_it_was(users_lab: Lab) -> None:
    lab = users_lab.under(OWN)
    told = _tells(
        lab,
        """
fd = os.pidfd_open(pids["child"])
results = [named(native(424, fd, 34, low(siginfo(34)), 0))]
if has_i386():
    results.append(named(i386(424, fd, 35, low(siginfo(35, "i386")), 0)))
results.append(named(native(424, fd, 36, low(siginfo(35)), 0)))  # another signal's
results.append(named(native(424, fd, 36, low(siginfo(36, code=0)), 0)))  # as if from the kernel
results.append(named(native(424, fd, 36, 8, 0)))
tell([results, [[a["code"], a["pid"] == os.getpid()] for a in arrived()["child"]]])
""",
    )
    results, infos = told
    assert results == [0] * len(infos) + ["EINVAL", "EPERM", "EFAULT"]
    assert infos == [[-1, True]] * len(infos)


# Whose rights count


@needs_root
def test_root_in_ones_own_user_namespace_is_nobody_outside_of_it(lab: Lab) -> None:
    """The supervisor is root and carries the call out: only as far as the caller could."""
    lab.under("name: all, signals: ['@all'], decision: allow")
    told = _tells(
        lab,
        """
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
fd = os.pidfd_open(pids["sibling"])
before = named(native(424, fd, 34, 0, 0))
if native(272, 0x10000000) != 0:  # unshare(CLONE_NEWUSER)
    tell("no user namespaces here")
else:
    tell([before, named(native(424, fd, 34, 0, 0)), named(native(62, pids["sibling"], 34))])
""",
    )
    if isinstance(told, str):
        pytest.skip(told)
    assert told == ["EPERM"] * 3


def test_a_process_that_is_not_dumpable_signals_like_any_other(users_lab: Lab) -> None:
    lab = users_lab.under(OWN)
    told = _tells(
        lab,
        """
libc.prctl(4, 0, 0, 0, 0)
signal.pthread_sigmask(signal.SIG_BLOCK, {34})
results = [send(call, "native", pid, 34) for call in ("kill", "tgkill", "rt_sigqueueinfo")
           for pid in (os.getpid(), pids["child"])]
tell([results, len(drain()), len(arrived()["child"])])
""",
    )
    assert told == [[0] * 6, 3, 3]


# Tracing


TRACE = """
def traced(request, pid):
    result = native(101, request, pid, 0, 0)
    if result == 0:
        os.waitpid(pid, 0x40000000)  # __WALL
        native(101, 17, pid, 0, 0)  # PTRACE_DETACH
    return named(result)
def reached_memory(pid):
    try:
        os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))
        return "opened"
    except OSError as refusal:
        return errno.errorcode[refusal.errno]
def wrote(pid):
    here = ctypes.create_string_buffer(8)
    at = int(open("/proc/self/maps").readline().split("-")[0], 16)
    words = struct.pack("QQ", ctypes.addressof(here), 8), struct.pack("QQ", at, 8)
    return named(native(311, pid, words[0], 1, words[1], 1, 0))
supervisor = os.getppid()
front = int(open(f"/proc/{supervisor}/stat").read().rpartition(")")[2].split()[1])
"""


def test_nobody_traces_sigwrap_or_anybody_outside(users_lab: Lab) -> None:
    lab = users_lab.under("name: all, signals: ['@all'], target: session, decision: allow")
    outside = lab.outsider()
    text = f"""
import sys
{TRACE}
child = spawn(signal.pause)
told = {{}}
for name, pid in (("front", front), ("supervisor", supervisor), ("outside", int(sys.argv[1]))):
    told[name] = [traced(16, pid), traced(0x4206, pid), traced(8, pid), reached_memory(pid),
                  wrote(pid), named(native(438, os.pidfd_open(pid), 0, 0))]
own = named(native(101, 16, child, 0, 0))
os.waitpid(child, 0)
own = [own, named(native(101, 17, child, 0, 0)), reached_memory(child)]
os.kill(child, 9)
os.waitpid(child, 0)
tell([told, own])
"""
    told, own = lab.tells(text, outside.pid)
    assert own == [0, 0, "opened"]
    for name in ("front", "supervisor", "outside"):
        assert told[name][:3] == ["EPERM"] * 3
        assert set(told[name][3:]) <= {"EPERM", "EACCES"}, (name, told[name])
    rules = Counter(rule for call, _, rule in _blocked(lab) if call == "ptrace")
    assert rules == {"builtin:sigwrap": 6, "builtin:ptrace": 3}
    assert outside.lives


def test_a_child_that_asks_to_be_traced(sigwrap: Any) -> None:
    """Debuggers start programs so."""
    lab = Lab(sigwrap).under(OWN)
    text = """
def tracee():
    assert native(101, 0, 0, 0, 0) == 0  # PTRACE_TRACEME
    os.kill(os.getpid(), signal.SIGSTOP)
child = spawn(tracee)
_, status = os.waitpid(child, 0)
stopped = os.WIFSTOPPED(status)
went_on = native(101, 7, child, 0, 0)  # PTRACE_CONT
_, status = os.waitpid(child, 0)
tell([stopped, went_on, status])
"""
    assert lab.tells(text) == [True, 0, 0]


# As many as they can


def test_ten_processes_as_fast_as_they_can(users_lab: Lab) -> None:
    lab = users_lab.under(OWN)
    told = _tells(
        lab,
        """
kill = libc.kill
signal.signal(34, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_SETMASK, ())
def at_itself():
    own = os.getpid()
    os._exit(sum(kill(own, 34) != 0 for _ in range(1000)) != 0)
def at_the_sibling():
    os._exit(sum(kill(pids["sibling"], 9) != -1 for _ in range(1000)) != 0)
storm = [spawn(run) for run in (at_itself, at_the_sibling) * 5]
tell([[os.waitpid(pid, 0)[1] for pid in storm], arrived()])
""",
    )
    assert told == [[0] * 10, {"child": [], "sibling": []}]
    sent: Counter[int] = Counter()
    rows: Counter[int] = Counter()
    for each in lab.payloads("signal_sent"):
        sent[each["source_pid"]] += each.get("count", 1)
        rows[each["source_pid"]] += 1
    assert sorted(sent.values()) == [1000] * 5
    assert max(rows.values()) < 60
    blocked = Counter(each["source_pid"] for each in lab.payloads("signal_blocked"))
    assert sorted(blocked.values()) == [1000] * 5


# Numbers of a pid namespace

INTO_A_NAMESPACE = """
import sys, threading
def into_a_namespace(first):
    '''`first` as number 1 of a pid namespace of its own.'''
    flags = 0x20000000 | (0 if os.getuid() == 0 else 0x10000000)
    if native(272, flags) != 0:
        tell("no pid namespaces here")
        return
    os.waitpid(spawn(first), 0)
"""


def test_numbers_of_a_pid_namespace_mean_what_they_mean_there(users_lab: Lab) -> None:
    lab = users_lab.under(OWN)
    outside = lab.outsider()
    text = (
        INTO_A_NAMESPACE
        + """
boxes, outside = sys.argv[1], int(sys.argv[2])
def first():
    block_all()
    spawn(lambda: receive(boxes, "two"))
    ask(boxes, "two")
    def three():
        told = {"own": [os.getpid(), os.getppid()]}
        for name, number in (("above", 1), ("sibling", 2), ("itself", 3), ("outside", outside),
                             ("nobody", 300), ("group", 0)):
            told[name] = [named(send(call, "native", number, 34)) for call in
                          (("kill", "tgkill", "rt_sigqueueinfo") if number > 0 else ("kill",))]
        told["arrived"] = [len(drain()), ask(boxes, "two")[1]]
        tell(told)
    os.waitpid(spawn(three), 0)
    by_first = [named(send("kill", "native", 2, 35)), [a["signal"] for a in ask(boxes, "two")[1]],
                len(drain())]
    tell(by_first)
    dismiss(boxes, "two")
box(boxes, "two")
into_a_namespace(first)
"""
    )
    done = lab.run(text, lab.boxes, outside.pid)
    said = list(map(json.loads, done.stdout.splitlines()))
    if isinstance(said[0], str):
        pytest.skip(said[0])
    told, by_first = said
    assert told["own"] == [3, 1]
    for name in ("above", "sibling"):
        assert told[name] == ["EPERM"] * 3, told
    for name in ("outside", "nobody"):
        assert told[name] == ["ESRCH"] * 3, told
    assert told["itself"] == [0] * 3
    assert told["group"] == [0]
    # Itself three times, and as one of its group.
    assert told["arrived"] == [4, []]
    assert by_first == [0, [35], 0]
    kinds = Counter(each["target_type"] for each in lab.payloads() if each["target_pid"])
    assert kinds["external"] == kinds["system"] == kinds["user"] == 0
    own = {each["source_pid"] for each in lab.payloads("signal_sent")}
    assert all(each["source_pid"] > 3 for each in lab.payloads("signal_sent")), own
    assert outside.arrived() == []


def test_numbers_that_are_given_away_at_once(lab: Lab) -> None:
    """In a pid namespace of twenty numbers, where a number is another process's in no time."""
    lab.under(OWN)
    text = (
        INTO_A_NAMESPACE
        + """
rounds = int(sys.argv[1])
def first():
    if native(165, b"proc", b"/proc", b"proc", 0, 0) != 0:  # mount
        return tell("no /proc of its own")
    try:
        with open("/proc/sys/kernel/pid_max", "w") as file:
            file.write("320")
    except OSError as refusal:
        return tell(f"pid_max: {refusal}")
    over, overs = os.pipe()
    def victims():
        '''The attacker's siblings' children: they come and go, and none may be hit.'''
        hit = made = 0
        os.set_blocking(over, False)
        while True:
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            made += 1
            hit += os.WIFSIGNALED(os.waitpid(pid, 0)[1])
            try:
                os.read(over, 1)
                break
            except BlockingIOError:
                pass
        tell([made, hit])
    def attacker():
        sent = 0
        for _ in range(rounds):
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            reaper = threading.Thread(target=os.waitpid, args=(pid, 0))
            reaper.start()
            for _ in range(3):
                sent += native(62, pid, 9) == 0
            reaper.join()
        tell(sent)
    one = spawn(victims)
    os.waitpid(spawn(attacker), 0)
    os.write(overs, b"x")
    os.waitpid(one, 0)
if os.getuid() == 0:
    native(272, 0x00020000)  # a mount namespace, for its /proc
    native(165, b"none", b"/", None, 0x44000, None)  # MS_REC | MS_PRIVATE
into_a_namespace(first)
"""
    )
    done = lab.run(text, max(ROUNDS // 50, 1))
    said = list(map(json.loads, done.stdout.splitlines()))
    if isinstance(said[0], str):
        pytest.skip(said[0])
    sent, (made, hit) = said
    assert made > 20 and sent
    assert hit == 0


def test_a_namespaces_first_process_is_killed_by_nobody_in_it(users_lab: Lab) -> None:
    """Not by way of the supervisor either, who stands above it."""
    lab = users_lab.under("name: all, signals: ['@all'], decision: allow")
    text = (
        INTO_A_NAMESPACE
        + """
def first():
    init = os.pidfd_open(os.getpid())
    def inside():
        os.setpgid(0, 0)
        tell([named(native(424, init, number, 0, 0)) for number in (9, 19)])
    os.waitpid(spawn(inside), 0)
    tell("lives")
into_a_namespace(first)
"""
    )
    said = list(map(json.loads, lab.run(text).stdout.splitlines()))
    if isinstance(said[0], str) and said[0] != "lives":
        pytest.skip(said[0])
    assert said == [[0, 0], "lives"]


def test_another_process_is_not_reached_by_its_threads(users_lab: Lab) -> None:
    lab = users_lab.under(OWN, WINDOWS_OUT)
    text = (
        OWNERS
        + TRACE
        + """
import threading
told, going = os.pipe(), os.pipe()
def sibling():
    block_all()
    def second():
        os.write(told[1], b"%d\\n" % threading.get_native_id())
        os.read(going[0], 1)
    thread = threading.Thread(target=second)
    thread.start()
    thread.join()
    os._exit(len(drain()))
victim = spawn(sibling)
tid = int(line_of(told[0]))
def attacker():
    results = [named(result) for result in (
        native(62, tid, 9), native(200, tid, 9), native(234, victim, tid, 9),
        native(234, tid, tid, 9), native(129, tid, 9, siginfo(9)),
        native(297, victim, tid, 9, siginfo(9)),
        native(424, os.pidfd_open(tid, os.O_EXCL), 9, 0, 0),
        native(424, os.pidfd_open(tid, os.O_EXCL), 9, 0, 2),
        native(101, 16, tid, 0, 0), native(101, 0x4206, tid, 0, 0))]
    one, _ = socket.socketpair()
    results += [named(call(one.fileno(), tid)) for call in SETOWNS.values()]
    tell([results, len(results)])
os.waitpid(spawn(attacker), 0)
os.write(going[1], b"x")
tell(os.waitstatus_to_exitcode(os.waitpid(victim, 0)[1]))
"""
    )
    (results, count), status = map(json.loads, lab.run(text).stdout.splitlines())
    assert (results, status) == (["EPERM"] * count, 0)
    events = lab.payloads("signal_blocked")
    assert len(events) == count and {each["target_type"] for each in events} == {"siblings"}


# Children with other parents and other last words


def test_other_parents_and_exit_signals(users_lab: Lab) -> None:
    """CLONE_PARENT makes a sibling, which may not be signalled; a strange exit signal reaches but
    the parent that asked for it."""
    lab = users_lab.under(OWN)
    text = """
import sys
block_all()
CLONE_PARENT = 0x8000
def clone(flags):
    pid = native(56, flags, 0, 0, 0, 0)
    if pid == 0:
        return 0
    return pid
lasting = clone(CLONE_PARENT)
if lasting == 0:
    signal.sigwait(EVERY_SIGNAL)
    os._exit(0)
def attacker():
    sibling = clone(CLONE_PARENT | signal.SIGCHLD)
    if sibling == 0:
        os.read(going[0], 1)
        os._exit(len([each for each in drain() if each["signal"] == 34]))
    results = [named(native(62, sibling, 34)), named(native(62, lasting, 34))]
    os.write(going[1], b"x")
    loud = clone(35)
    if loud == 0:
        os._exit(0)
    os.waitpid(loud, 0x40000000)  # __WALL
    tell([results, [each["signal"] for each in drain()], sibling])
going = os.pipe()
one = spawn(attacker)
os.waitpid(one, 0)
_, status = os.waitpid(-1, 0)
tell([os.waitstatus_to_exitcode(status), [each["signal"] for each in drain()]])
"""
    done = lab.run(text)
    (results, own, _sibling), root = map(json.loads, done.stdout.splitlines())
    assert (results, own) == (["EPERM", "EPERM"], [35])
    assert root == [0, []]
    kinds = [kind for _, kind, _ in _blocked(lab)]
    assert kinds == ["siblings", "session"]


def test_timers_and_queues_of_ones_own_cost_nothing(users_lab: Lab) -> None:
    lab = users_lab.under(signal="deny")
    text = """
block_all()
event = struct.pack("<qii48x", 5, 34, 4)  # SIGEV_THREAD_ID
event = struct.pack("<qiii44x", 5, 34, 4, os.getpid())
timer = ctypes.c_int()
results = [named(native(222, 1, event, ctypes.byref(timer))),
           named(native(223, timer.value, 0, struct.pack("4q", 0, 0, 0, 1), None))]
signal.setitimer(signal.ITIMER_REAL, 0.001)
arrived = sorted([signal.sigwait({34, signal.SIGALRM}) for _ in range(2)])
tell([results, arrived])
"""
    assert lab.tells(text) == [[0, 0], [14, 34]]
    assert lab.payloads() == []
