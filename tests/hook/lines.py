"""Shell lines, each of which has something run /bin/true with a number: by any of the ways in which
a program runs another, several within each other."""

from __future__ import annotations

import os
import random
import shlex
from collections.abc import Callable

TARGET = "/bin/true"

_OPTIONS = {  # of each program, spelled in any way
    "env": "-i|-u X|--unset=X|--unset X|--uns X|-uX|-C .|--chdir=.|--ch .|-iu X|A=1|-i A=1|"
    "--split=nice|--split-s nice",
    "nice": "-n 1|-n1|-1|--adjustment=1|--adjustment 1|--adj 1",
    "nohup": "--",
    "timeout": "-k 5|-k5|--kill-after=5|--kill 5|-s KILL|--sig=KILL|--foreground|-vk 5|-v",
    "stdbuf": "-oL|-o L|--out L|--output=0|-i0 -oL",
    "setsid": "-w|--wait|--",
    "ionice": "-c 3|-c3|--class 3|--class=3|-tc 3|-t",
    "chrt": "-o|--other|-ov|-o --",
    "taskset": "-a|--",
    "strace": "-f|-o /dev/null|-o/dev/null|--output=/dev/null|-e trace=none|-fe trace=none|-qqo f|"
    "-E A=1|--env A=1|--trace none|--seccomp -f|--string-l 5|-o !cat",
    "setpriv": "--nnp|--no-new-privs|--pdeathsig keep|--pdeathsig=keep|--pdea keep|--inh-caps -all",
    "setarch x86_64": "-R|--addr-no-r|-RX|--",
    "prlimit": "-n64|--nofile=64|--nofi=64|-n=64 --core",
    "flock": "-x|-w 1|-w1|--wait 1|--timeout 1|--tim 1|-xw 1|--verb|-F",
    "fakeroot": "--",
    "dbus-run-session": "--",
    "busybox": "nice|env|timeout 9|nohup|env -i|xargs -n 1",
    "find . -maxdepth 0": "-exec|-name . -exec|-execdir",
    "choom": "-n 0 --|-n0|--adjust=0",
    "ssh-agent": "",
    "time": "--",
    "xargs": "-n 1|-n1|--max-args=1|--max-a 1|-0|--max-lines|-tn 1|-I {}|-i",
}
_OF_ROOT = {
    "unshare": "-m|--mount|-um|-u --propagation private -m|--wd=.|-w .|--wd .",
    "nsenter": "-t 1 -u|-t1 --uts|--targ 1 -u|-t 1 -F -u",
    "chroot": "--userspec 0|--userspec=0|--groups=0|--user 0|--skip-chdir",
    "runuser": "-u root --|--user=root --|--us root --",
}
_OPERANDS = {"timeout": "9", "chrt": "0", "taskset": "1", "flock": "lock", "chroot": "/"}
_LINES = (
    "bash -c @|sh -c @|bash -ec @|bash --norc -c @|busybox sh -c @|env bash -c @|flock lock -c @|"
    "script -qc @ /dev/null|script -q --com @ /dev/null|script /dev/null -qc @|"
    "git -c alias.x=!@ x|git -C . -c user.name=n -c alias.X=!@ x y|git submodule foreach @|"
    "git submodule --quiet foreach --recursive @|git rebase -qx @ HEAD~1|"
    "git rebase --exec=@ HEAD~1|git rebase --ex @ -q HEAD~1|git difftool -yx @ HEAD~1|"
    "git difftool -y --extcmd=@ HEAD~1|git -c core.pager=@ -p log|git grep -O@ x|"
    "git grep -niO@ x|git clone -nqu @ . q --no-local|"
    "git -c sequence.editor=@ rebase -qi HEAD~1|"
    "git -c x.y=. for-each-repo --config=x.y -c alias.x=!@ x|"
    "env GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0=!@ git x|"
    "make -s SHELL=@ all|make -s X!=@ all|"
    "make -s --eval=all:;@ all|make -s X=$(shell(@)) all|make -s X=$(call\tshell,@) all|"
    "split --filter=@ Makefile|split --filt @ Makefile|tar -cI @ -f f Makefile|"
    "tar --use-comp=@ -cf f Makefile|tar --checkpoint=1 --checkpoint-action=exec=@ -cf f Makefile"
).split("|")
_LINES_OF_ROOT = ["su -c @", "su root -c @", "su --comm @ root", "sg root -c @", "sg root @"]
_AROUND = (
    "{}",
    "A=1 {}",
    "</dev/null {}",
    "true && {} 2>/dev/null behind",
    "! {} <<E behind\nE",
    "true && {}",
    "if {}; then :; fi",
    "echo $({})",
    'x=a; echo "${x%$({})}"',
    "[[ a =~ <({}) ]]",
    "f() { {}\n}; f",
    "{} | cat",
    "command {}",
    "[ x || {} ]",
    "x=$ {}",
    "x=(a)# ; {}",
    "1<<<x {}",
    "3>&-{}",
    "3<& -{}",
    "for i in 1; do : <<E; cd .; done\nE\n{}\n: <<E\nE",
    "!\\\n {}",
    "time \\\n-p {}",
    "if :; then\\\n {}; fi",
    "x=$(cat <<'E'\nE)\n{}\nE\n)",
    "cat <<A - <<'B'\n$({})\nA\nB",
    "cat <<-A\n\tx \\\nA\n'$({})'\nA",
    "case a in (b|a) {};; esac",
    "while {}; do break; done",
    "{ time ({}); } 2>&1 | cat",
    'a=b echo ${x:-${y:-"$({})"}}',
    "for ((i=0;i<1;i++)); do {}; done",
    "declare -A m=([x]=$({})); v[$({})]=1",
    "echo $(( $({}) + 1 )) \\\n && {}",
    "exec {}",
    "exec -a n {}",
    "exec -can {}",
    "builtin command {}",
    "! {}",
    "time -p {}",
    "time A=1 {}",
    "! time -- A=1 {}",
    "time eval @",
    "time trap @ EXIT",
    "time command {}",
    "cd /dev; . ./stdin <<< @",
    "bash ../../../../../../../../dev/stdin <<< @",
    "x=-exec; find . -maxdepth 0 $x {} \\;",
    "echo @ | xargs -0 bash -c",
    "({})",
    "for i in 1; do {}; done",
    "cat <<E\n$({})\nE",
    "x=-i; env $x {}",
    "x=1; nice -n $x {}",
    "echo x | xargs {}",
    "echo x | xargs -I% {}",
    "echo /bin/true | xargs -I/bin/true {}",
    "eval @",
    "trap @ EXIT",
    "x=@; $x",
    'x=@; eval "$x"',
    "echo @ | sh",
    "bash <<< @",
)
_MOST = 4


def generated(seed: int) -> str:
    """Its marker is the seed."""
    dice = random.Random(seed)
    words = [TARGET, f"m{seed}", "push", *dice.sample(["--force", "a b", "-c", ""], 2)]
    for _ in range(dice.randrange(1, _MOST)):
        wrapped = dice.choice((_by_words, _by_words, _by_line))
        words = wrapped(words, dice)
    text = _written(words, dice)
    around = dice.choice(_AROUND)
    return around.replace("@", shlex.quote(text)).replace("{}", text)


def _by_words(words: list[str], dice: random.Random) -> list[str]:
    programs = {**_OPTIONS, **(_OF_ROOT if os.getuid() == 0 else {})}
    program = dice.choice([*programs])
    options = dice.choice(["", *programs[program].split("|")])
    operand = _OPERANDS.get(program, "")
    told = [*program.split(), *options.split(), *operand.split()]
    if program.startswith("find"):
        return [*program.split(), *(options or "-exec").split(), *words, ";"]
    return [*told, *words]


def _by_line(words: list[str], dice: random.Random) -> list[str]:
    line = dice.choice([*_LINES, *(_LINES_OF_ROOT if os.getuid() == 0 else [])])
    text = _written(words, dice)
    return [word.replace("@", text) for word in line.split(" ")]


def _written(words: list[str], dice: random.Random) -> str:
    spelled: tuple[Callable[[str], str], ...] = (shlex.quote, _in_double, _escaped)
    return " ".join(dice.choice(spelled)(word) for word in words)


def _in_double(word: str) -> str:
    return '"' + "".join(f"\\{each}" if each in '"\\$`' else each for each in word) + '"'


def _escaped(word: str) -> str:
    if not word or "\n" in word:
        return shlex.quote(word)
    return "".join(each if each.isalnum() or each in "-/.=" else f"\\{each}" for each in word)
