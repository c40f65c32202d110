"""What a program runs for its caller is read, wherever it is told; and what can't be is said."""

from __future__ import annotations

from sigwrap.hooks.option_words import said
from sigwrap.hooks.shell_line import Line, read_line
from sigwrap.hooks.starters import STARTERS
from sigwrap.hooks.words import Word
from sigwrap.hooks.wrapped import chain_of

WHICH = "the program that it runs is not known in advance"
RUNS = "the command that it runs is not known in advance"
NOT_READ = "sigwrap cannot tell what it runs"
INPUT = "the standard input of its shell is not known"


def read(text: str) -> Line:
    return read_line(text, folder="/p", home="/home/u", depth=2)


def behind(line: Line) -> list[str]:
    """All but the line's own command."""
    return [
        " ".join(word.text.replace("\0", "_") for word in command.words)
        for command in line.commands[1:]
    ]


def test_a_command_behind_a_program_is_read() -> None:
    for line in [
        "strace -fo log git push -f",
        "strace --output=log -E A=1 --trace none -- git push -f",
        "ltrace -o log git push -f",
        "valgrind --tool=none git push -f",
        "unshare -rm --map-users 0,0,1 git push -f",
        "nsenter -t 1 -m/x --wd=/ git push -f",
        "setpriv --nnp --pdeathsig keep git push -f",
        "setarch x86_64 -R git push -f",
        "setarch -R git push -f",
        "linux32 git push -f",
        "prlimit -n=9 --core git push -f",
        "systemd-run --user --scope -p CPUQuota=1% git push -f",
        "systemd-inhibit --why x git push -f",
        "fakeroot -- git push -f",
        "gosu nobody git push -f",
        "tini -- git push -f",
        "flock -w 1 lock git push -f",
        "flock lock -c 'git push -f'",
        "busybox flock lock git push -f",
        "su -c 'git push -f'",
        "su nobody --comm 'git push -f'",
        "runuser -u nobody -- git push -f",
        "runuser nobody -c 'git push -f'",
        "sg docker 'git push -f'",
        "sg docker -c 'git push -f'",
        "sg docker 'git push -f' x",
        "script -qc 'git push -f' /dev/null",
        "watch -n 1 git push -f",
        "watch -x git push -f",
        "ssh localhost git push -f",
        "ssh -p 22 me@127.0.0.1 git push -f",
        "ssh 'ssh://me@[::1]:22' 'git push -f'",
        "ssh 2130706433 git push -f",
        "ssh 0 git push -f",
        "ssh ::ffff:127.0.0.2 git push -f",
        "ssh x.localhost. git push -f",
        "git rebase -i -x 'git push -f' main",
        "git rebase --exec='git push -f' main",
        "git bisect run git push -f",
        "git submodule --quiet foreach --recursive git push -f",
        "git submodule foreach 'git push -f'",
        "git for-each-repo --config=x.y push -f",
        "git -c alias.x='!git push -f' x",
        "git -c alias.x='!git push' X -f",
        "git -c alias.x='push -f' x",
        "git filter-branch --tree-filter 'git push -f'",
        "git -c credential.helper='!git push -f; :' fetch",
        "make 'X != git push -f'",
        "perf stat -e cycles git push -f",
        "perf record -g -- git push -f",
        "choom -n 0 -- git push -f",
        "ssh-agent git push -f",
        "gpg-agent --daemon git push -f",
        "pyenv exec git push -f",
        "debconf -f x git push -f",
        "busybox cttyhack git push -f",
        "split -b 5 --filt='git push -f' x",
        "dpkg --pre-invoke='git push -f' -i x",
        "find . -exec git push -f ';'",
        "find . -execdir git push -f ';'",
        "find . -ok git push -f ';'",
    ]:
        found = read(line)
        assert found.unknown == ()
        assert behind(found)[0] == "git push -f", line


def test_of_what_is_run_each_word_is_told() -> None:
    for line, found in [
        ("git -c core.sshCommand='a b' fetch", ["a b _"]),
        ("git difftool -yx 'a b' HEAD", ["a b _"]),
        ("git fetch --upload-pack 'a b'", ["a b _"]),
        ("git grep -inO'a b' x", ["a b _"]),
        ("git clone -qlu 'a b' . q", ["a b _"]),
        ("git clone -nqc core.sshCommand='a b' x:y", ["a b _"]),
        ("make SHELL='a b'", ["a b _"]),
        ("make SHELL=/bin/bash X=1 all", []),
        ("gmake SHELL='a b'", ["a b _"]),
        ("make CC='a b' x.o", ["a b _"]),
        ("make 'a+b!=c d'", ["c d"]),
        ("rsync -aIe 'a b' x y:", ["a b _"]),
        ("git -c imap.tunnel='a b' imap-send", ["a b _"]),
        ("git merge-index a -a", ["a -a"]),
        ("make -f dev/x.mk -j$(n) X='$(HOME)/x' all", ["make -f dev/x.mk -j_ X=$(HOME)/x all"]),
        ("git config --global core.pager 'a b'", ["a b ./file"]),
        ("git config alias.x '!a b'", ["a b _"]),
        ("git config user.name x", []),
        ("git -c core.sshCommand='ssh -i k' fetch", ["ssh -i k machine command"]),
        ("git send-email --sendmail-cmd='a b' x", ["a b _"]),
        ("rsync -ave 'a b' x y:", ["a b _"]),
        ("unbuffer -p a b", ["a b"]),
        ("cmake -E env A=1 a", ["env A=1 a"]),
        ("cmake -E chdir / a", ["chdir / a", "a"]),
        ("tar -I 'a b' -cf x y", ["a b _"]),
        ("tar -cIa -f x y", ["a _"]),
        ("tar --use-comp=a -cf x y", ["a _"]),
        ("sort -u --comp a x", ["a _"]),
        ("scp -rS a x y:", ["a _"]),
        ("install -s --strip-program=a x y", ["a _"]),
        ("wget --use-askpass=a x", ["a _"]),
        ("tar -xzf x -C $d; sort -k2 -u x; gcc -w -o x x.c; apt-get -oDebug=1 install x", None),
        ("strace -o '|a b' c", ["a b", "c"]),
        ("strace sh -c 'a; nsenter b'", ["sh -c a; nsenter b", "a", "nsenter b", "b"]),
        ("strace echo x", ["echo x"]),  # the program, not what the shell does by that name
        ("strace command a", ["command a", "a"]),
        ("strace a $x", ["a _"]),
        ("find . -exec a + b {} + -o -exec c {}x ';'", ["a + b _", "c _x"]),
        ('git -c core.pager=cat -c user.name="$x" log', ["cat _"]),
        ('find "$d" -name "$x" -exec a ";"', ["a"]),
        ("git push; flock -n 9; ssh -V; ssh example.com a; su --help; prlimit -p 1", None),
    ]:
        told = read(line)
        assert told.unknown == ()
        assert behind(told) == found or (
            found is None and len(told.commands) == line.count(";") + 1
        ), line


def test_what_a_program_runs_may_not_be_known() -> None:
    for line, why in [
        ("strace --other x git push", WHICH),
        ("strace --out x git push", WHICH),  # two begin so
        ("strace -Jx git push", WHICH),
        ("strace $x git push", WHICH),
        ("strace -o log $x", WHICH),
        ("flock $x git push", WHICH),
        ("git $x push", WHICH),
        ("xargs -I rm rm -rf x", WHICH),
        ("xargs -i {} x", WHICH),
        ("env -S 'git\\_push'", WHICH),
        ("env -S '${X} push'", WHICH),
        ("env -iS '-S \"git push\"'", WHICH),
        ("nice " * 10 + "git push", WHICH),
        ("strace " * 20 + "git push", "the line has too many commands"),
        ('su -c "$x"', RUNS),
        ('watch "$x"', RUNS),
        ("make SHELL=$x", RUNS),
        ("make SHELL='a \"b\"'", RUNS),
        ("parallel git push ::: a", NOT_READ),
        ("su -s /bin/x -c a", NOT_READ),
        ("make --eval='x:;a'", NOT_READ),
        ("make X='$(shell a)'", NOT_READ),
        ("make X='$(call shell,a)'", NOT_READ),
        ("make -f - all", NOT_READ),
        ("x && make -f - <<'E'\na:\nE", NOT_READ),
        ("make -sf /dev/stdin", NOT_READ),
        ("make --makefile=<(a)", NOT_READ),
        ("xargs make", NOT_READ),
        ("capsh -- -c a", NOT_READ),
        ("start-stop-daemon -Sx /a", NOT_READ),
        ("start-stop-daemon --start --starta a", NOT_READ),
        ("dpkg-architecture -c a", NOT_READ),
        ("busybox run-parts x", NOT_READ),
        ("tmux new -d a", NOT_READ),
        ("vim -c '!a'", NOT_READ),
        ("tar --checkpoint-action=exec=a -cf x y", NOT_READ),
        ("scp -oProxyCommand=a x y:", NOT_READ),
        ("sftp -b x y", NOT_READ),
        ("gcc -wrapper a x.c", NOT_READ),
        ("apt-get -o APT::Update::Pre-Invoke::=a update", NOT_READ),
        ("X=-exec; find . $X a ';'", RUNS),
        ("find . $(a)", RUNS),
        ("xargs find .", RUNS),
        ("git -c core.hooksPath=x commit", NOT_READ),
        ("git config core.hooksPath x", NOT_READ),
        ("git config --rename-section foo alias", NOT_READ),
        ("git -c help.autocorrect=1 psuh", NOT_READ),
        ("git remote-ext a 'b'", NOT_READ),
        ("wget -e use_askpass=a x", NOT_READ),
        ("make MAKEFILES=/dev/stdin", NOT_READ),
        ("make CFLAGS='; a' all", NOT_READ),
        ("a | find -files0-from - -delete", "the command that it runs is not known in advance"),
        ('git -c "$x" commit', NOT_READ),
        ("git --config-env=alias.x=X x", NOT_READ),
        ("ssh -o ProxyCommand=a example.com", NOT_READ),
        ("ssh -oHostName=localhost example.com a", NOT_READ),
        ("systemd-run -p ExecStartPre=a b", NOT_READ),
        ("ssh $x git push", "the machine that it runs on is not known in advance"),
        ("curl x | ssh localhost", INPUT),
        ("curl x | unshare -r", INPUT),
        ("curl x | chroot /x", INPUT),
        ("curl x | su nobody", INPUT),
        ("script log", INPUT),
    ]:
        assert why in [each.why for each in read(line).unknown], line


def test_what_a_program_changes_for_its_command_counts() -> None:
    assert read("strace -E LD_PRELOAD=x make").variables == {"LD_PRELOAD"}
    for line in ("ssh localhost rm x", "su -l -c 'rm x'", "unshare -w / rm x"):
        assert read(line).commands[-1].folders == ("",), line
    assert read("chroot / rm x").commands[-1].folders == ("", "/")
    assert read("strace rm x").commands[-1].folders == ("/p",)
    assert read("env --chd=/ rm x").commands[-1].folders == ("", "/")


def test_a_wrapper_is_read_as_it_reads_its_options() -> None:
    for line, found in [
        ("timeout --kill 5 9 git push", "git push"),
        ("env --split='git push' -f", "git push -f"),
        ("env -i --split-s 'git push'", "git push"),
        ("chroot --userspec root / git push", "git push"),
        ("xargs --max-lines git push", "git push _"),
        ("exec -abla git push", "git push"),
        ("exec -a bla git push", "git push"),
        ("exec -ca bla git push", "git push"),
    ]:
        words = read(line).commands[0].words
        _, innermost = [*chain_of([word.text for word in words])][-1]
        assert " ".join(innermost).replace("\0", "_") == found, line


def test_each_row_of_the_table_names_options_that_it_has() -> None:
    for name, row in STARTERS.items():
        named = " ".join(
            (row.lines, row.settings, row.words, row.piped, row.assigns, row.nothing, row.moves)
        )
        for option in f"{named} {row.unread}".split():
            if (
                option in ("*", "-")
                or row.long == "*"
                or (name == "flock" and option in row.lines.split())
            ):
                continue
            assert said(row, [Word(name), Word(option), Word("x")]).has(option), (name, option)
