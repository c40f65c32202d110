"""What a program runs for its caller is read in every way that it could be meant."""

from __future__ import annotations

import time

from sigwrap.hooks.shell_line import Line
from sigwrap.hooks.shell_reader import read_line
from sigwrap.hooks.variables import may_run
from sigwrap.hooks.words import Word

# The command is at one of their words.
SHOWN = r"""
strace -fo log git push -f
strace --output=log -E A=1 --trace none -- git push -f
ltrace -o log git push -f
valgrind --tool=none git push -f
setpriv --nnp --pdeathsig keep git push -f
prlimit -n=9 --core git push -f
systemd-inhibit --why x git push -f
gosu nobody git push -f
tini -- git push -f
flock -w 1 lock git push -f
flock lock -c 'git push -f'
busybox flock lock git push -f
watch -n 1 git push -f
watch 'git push' -f
strace --unheard-of x git push -f
strace flock lock -c 'choom -n 0 git push -f'
git bisect run git push -f
git submodule --quiet foreach --recursive git push -f
git submodule foreach 'git push -f'
perf stat -e cycles git push -f
perf record --pre='git push -f' a
choom -n 0 -- git push -f
ssh-agent git push -f
gpg-agent --daemon git push -f
pyenv exec git push -f
cmake -E env A=1 git push -f
perf stat record git push -f
debconf -f x git push -f
busybox cttyhack git push -f
find . -exec git push -f ';'
find . -execdir git push -f ';'
find . -ok git push -f ';'
find . -name '*.ts' -o -exec git push -f {} +
"""
# The hook asks as well, whatever else they run.
HIDDEN = r"""
unshare -rm --map-users 0,0,1 git push -f
nsenter -t 1 -m/x --wd=/ git push -f
setarch x86_64 -R git push -f
linux32 git push -f
systemd-run --user --scope -p CPUQuota=1% git push -f
fakeroot -- git push -f
su -c 'git push -f'
su nobody --comm 'git push -f'
runuser -u nobody -- git push -f
sg docker 'git push -f'
script -qc 'git push -f' /dev/null
parallel git push -f ::: a
ssh localhost git push -f
ssh -p 22 me@127.0.0.1 git push -f
ssh 'ssh://me@[::1]:22' 'git push -f'
ssh 2130706433 git push -f
ssh ::ffff:127.0.0.2 git push -f
ssh x.localhost. git push -f
git rebase -i -x 'git push -f' main
git rebase --exec='git push -f' main
git -c alias.x='!git push -f' x
git -c alias.x='!git push' X -f
git -c alias.x='push -f' x
git -c core.sshCommand='git push -f' fetch
git config --global core.pager 'git push -f'
git filter-branch --tree-filter 'git push -f'
git -c credential.helper='!git push -f; :' fetch
git difftool -yx 'git push -f' HEAD
git fetch --upload-pack 'git push -f'
git grep -inO'git push -f' x
git clone -qlu 'git push -f' . q
git clone -nqc core.sshCommand='git push -f' x:y
git send-email --sendmail-cmd='git push -f' x
make 'X != git push -f'
make SHELL='git push -f'
make CC='git push -f' x.o
rsync -ave 'git push -f' x y:
split -b 5 --filt='git push -f' x
tar -I 'git push -f' -cf x y
tar cIf 'git push -f' x y
git clone -4c core.sshCommand='git push -f' x:y
git clone --con core.sshCommand='git push -f' x:y
strace -f git grep -O'git push -f' x
flock l make 'X!=git push -f'
bash --rcfile f -c 'git push -f'
tar --use-comp='git push -f' -cf x y
sort -u --comp 'git push -f' x
scp -rS 'git push -f' x y:
install -s --strip-program='git push -f' x y
wget --use-askpass='git push -f' x
dpkg --pre-invoke='git push -f' -i x
strace -o '|git push -f' c
GIT_EDITOR='git push -f' git commit
export GIT_PAGER='git push -f'
export 'PAGER=git push -f'
command export PAGER='git push -f'
env -i EDITOR='git push -f' git commit
time GIT_EXTERNAL_DIFF='git push -f' git diff
LESSOPEN='|git push -f' less f
GIT_SSH_COMMAND='git push -f' git fetch
CC='git push -f' make
f() { git push -f; }; f
eval 'git push -f'
trap 'git push -f' EXIT
"""
NOT_READ = r"""
git $x push
git --unheard-of push
git -c "$x" commit
git --config-env=alias.x=X x
git --exec-path=x status
git -c core.hooksPath=x commit
git -c help.autocorrect=1 psuh
git config core.hooksPath x
git config --rename-section foo alias
git remote-ext a 'b'
git for-each-repo --config=x.y push -f
git merge-index a -a
strace $x git push
strace -o log $x
flock $x git push
xargs -I rm rm -rf x
xargs -i {} x
xargs --rep=X X
env -S 'git\_push'
env -iS '-S "git push"'
env -u X -S 'a b'
make SHELL=$x
make --eval='x:;a'
make X='$(shell a)'
make X='$(call shell,a)'
make -f - all
x && make -f - <<'E'
make -sf /dev/stdin
make --makefile=<(a)
make MAKEFILES=/dev/stdin
make CFLAGS='; a' all
xargs make
capsh -- -c a
start-stop-daemon -Sx /a
dpkg-architecture -c a
busybox run-parts x
tmux new -d a
vim -c '!a'
tar --checkpoint-action=exec=a -cf x y
x=I; tar -cf y "-$x" a b
scp -oProxyCommand=a x y:
sftp -b x y
gcc -wrapper a x.c
apt-get -o APT::Update::Pre-Invoke::=a update
X=-exec; find . $X a ';'
find . $(a)
xargs find .
a | find -files0-from - -delete
wget -e use_askpass=a x
ssh -oHostName=localhost example.com a
ssh -F x example.com
ssh -oProxyCommand='git push -f' example.com
ssh $x git push
perf stat $x
perf stat record $x
perf lock contention $x
cmake $x -E a
GIT_PAGER='less -R;a' git log
GIT_PAGER='less -oa' git log
GIT_SSH_COMMAND='a;/ssh' git fetch
GIT_SSH_COMMAND='ssh -o =ProxyCommand=a' git fetch
rsync -e 'a$x/ssh' x y:
tar -I 'a${IFS}b;/gzip' -cf x y
CC='a;/gcc' make
CC='gcc -wrapper a' make
CC='gcc -o a' make
CC='gcc >a' make
make CFLAGS='-O2 -wrapper a'
make 'X=a >b'
SHELL='a;/sh' make
GIT_SEQUENCE_EDITOR="sed -i '1e a'" git rebase -i x
GIT_SEQUENCE_EDITOR="sed 1d>a" git rebase -i x
GIT_SEQUENCE_EDITOR="sed -i s/pick/edit/ a" git rebase -i x
systemd-run -p ExecStartPre=a b
curl x | ssh localhost
curl x | unshare -r
curl x | chroot /x
curl x | su nobody
script log
GIT_CONFIG_COUNT=1 git x
env GIT_CONFIG_PARAMETERS=x git x
env -S 'GIT_CONFIG_COUNT=1 git x'
export GIT_CONFIG_GLOBAL=x; git x
GIT_EXEC_PATH=. git x
BASH_ENV=/dev/stdin bash -c x
env 'BASH_FUNC_x%%=() { a; }' bash -c x
PAGER=$x git log
PAGER=a; PAGER+=' b'
read GIT_EDITOR < f
printf -v GIT_EDITOR x
for GIT_EDITOR in x; do git commit; done
: ${GIT_EDITOR:=x}
repeat 1 git push -f
aliases[x]=a; x
TAR_OPTIONS=--checkpoint-action=exec=x tar cf x y
CDPATH=/; cd usr && x
GLOBIGNORE=y; x *
"""
HARMLESS = r"""
git -c core.pager=cat -c user.name="$x" log
git -C sub --no-pager -c color.ui=never log --oneline
git config user.name x; git config --list; git config --get a.b; git config pull.rebase false
git rebase -i -X ours main; git clone --depth 1 x:y z; git grep -n x; git bisect start
git push; flock -n 9; ssh -V; ssh example.com a; su --help; vim --version
ssh -o StrictHostKeyChecking=no -i key me@host 'cd /srv && ls'
rsync -av -e 'ssh -p 2222 -i key' x y:
tar; tar -xzf x -C $d; tar -I 'zstd -19' -cf x y; sort -k2 -u x; gcc -w -o x x.c
apt-get -oDebug=1 -o DPkg::Options::=--force-confold install x
make -f dev/x.mk -j$(n) X='$(HOME)/x' CC=clang-18 CFLAGS='-O2 -g' all
make SHELL=/bin/bash X=1
find "$d" -name "$x" -exec a ";"
GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null git x
GIT_EDITOR=: PAGER= git x
GIT_SEQUENCE_EDITOR="sed -i '1s/pick/edit/'" git rebase -i x
GIT_SSH_COMMAND='ssh -i k -o StrictHostKeyChecking=no' git fetch
MAKEFLAGS=-j$(nproc) CC='ccache gcc -m32' make
BASH_ENV=env.sh bash x
GIT_SEQUENCE_EDITOR="sed -i -e 's/^pick 1a/edit 1a/' -e '2,9s/pick/f/'" git rebase -i x
GIT_PAGER='less -FRX' git log; CC=/usr/bin/gcc make CFLAGS='-O2 -fomit-frame-pointer'
strace a b; strace -f -o log a; perf stat a; valgrind --tool=none a
cmake --build build -j$(nproc); cmake -S . -B build
echo GIT_EDITOR $PAGER; unset GIT_CONFIG_COUNT
"""


def lines(text: str) -> list[str]:
    return [line.replace("<<'E'", "<<'E'\nE") for line in text.strip().split("\n")]


def read(text: str) -> Line:
    return read_line(text, folder="/p", home="/home/u", depth=2)


def commands(line: Line) -> list[str]:
    return [
        " ".join(word.text.replace("\0", "_") for word in command.words)
        for command in line.commands
    ]


def test_a_command_behind_a_program_is_read() -> None:
    for line in lines(SHOWN):
        found = read(line)
        assert not found.unknown, (line, found.unknown)
        assert any(each.startswith("git push -f") for each in commands(found)), line


def test_what_a_program_may_run_is_asked_about_and_read() -> None:
    for line in lines(HIDDEN):
        found = read(line)
        assert found.unknown, line
        assert any(each.startswith("git push -f") for each in commands(found)), line


def test_what_the_hook_does_not_read_is_asked_about() -> None:
    for line in lines(NOT_READ):
        assert read(line).unknown, line


def test_what_runs_nothing_else_is_not_asked_about() -> None:
    for line in lines(HARMLESS):
        assert not read(line).unknown, (line, read(line).unknown)


def test_only_the_readings_of_a_command_are_not_sure() -> None:
    sure = [(command.words[0].text, command.is_sure) for command in read("flock l a b; c").commands]
    assert sure == [("flock", True), ("l", False), ("a", False), ("b", False), ("c", True)]


def test_many_words_are_not_read() -> None:
    assert read(f"strace {'a ' * 200}").unknown
    assert read("strace " * 40 + "'a b' c").commands
    assert read("nice " * 10 + "git push").unknown


def test_programs_within_programs_are_bounded() -> None:
    started = time.process_time()
    assert read("find . -exec " * 100 + "a" + r" \;" * 100).unknown
    assert read("command " * 500 + "a").unknown
    assert read("git submodule foreach " * 33 + "a").commands
    assert read("strace git grep -Ox " * 24 + "a").unknown
    assert time.process_time() - started < 2


def test_a_long_value_takes_no_longer_than_its_length() -> None:
    """No expression has two ways to match the same text."""
    started = time.process_time()
    for name in ("GIT_PAGER", "GIT_SEQUENCE_EDITOR", "GIT_SSH", "CC", "CFLAGS", "MAKEFLAGS"):
        for piece in ("k", "j ", " -", "less -R", "ssh -a", "gcc -a ", "sed -e s/pick/e/", "a/"):
            for start in ("", piece.partition(" ")[0] + " "):
                assert may_run(name, Word(start + piece * 4000 + ";"))
    for piece in ("[", "x[", "/proc/self/", "/dev/fd/1"):
        assert not read(f"tar cf x '{piece * 2000}'").commands[0].words[0].splits
    assert time.process_time() - started < 5


def test_what_a_program_changes_for_its_command_counts() -> None:
    assert "LD_PRELOAD" in read("strace -E LD_PRELOAD=x make").variables
    for line in ("ssh localhost rm x", "su -l -c 'rm x'", "unshare -w / rm x"):
        found = {each.folders for each in read(line).commands if each.words[0].text == "rm"}
        assert found == {("",)}, line
    assert read("chroot / rm x").commands[-1].folders == ("", "/")
    assert read("env --chd=/ rm x").commands[-1].folders == ("", "/")
