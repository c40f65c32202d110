"""Which words are files, and what a command does with them."""

from __future__ import annotations

import shlex

import pytest

from sigwrap.policy.judge.file_words import Use, fails_from, file_words, name_of, redirections

READS, BENEATH, WRITES = Use.READ, Use.READ_BENEATH, Use.WRITE
MAKES, DELETES, FILLS = Use.CREATE, Use.DELETE, Use.FILL


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cat /k -n a", [(READS, "/k"), (READS, "a")]),
        ("ssh -i /k host", [(READS, "/k"), (READS, "host")]),
        ("ssh -i/k host", [(READS, "/k"), (READS, "host")]),
        (
            "curl --key=/k -o /out https://a",
            [(READS, "/k"), (WRITES, "/out"), (READS, "https://a")],
        ),
        ("curl -d @/k -o/out", [(READS, "/k"), (WRITES, "/out")]),
        ("grep -r x /k", [(BENEATH, "x"), (BENEATH, "/k")]),
        ("test -e /k", []),
        ("ls /k", []),
        ("rm -rf /k -- -x", [(DELETES, "/k"), (DELETES, "-x")]),
        ("mkdir -p /d", [(MAKES, "/d")]),
        ("tee -a /f", [(WRITES, "/f")]),
        ("cp -r a b /d", [(BENEATH, "a"), (BENEATH, "b"), (FILLS, "/d")]),
        ("mv a /d", [(DELETES, "a"), (FILLS, "/d")]),
        ("ln -s a /d", [(FILLS, "/d")]),
        ("dd if=/k of=/o bs=1", [(READS, "/k"), (WRITES, "/o"), (READS, "1")]),
        ("sed -i s/a/b/ /f", [(READS, "s/a/b/"), (WRITES, "/f")]),
        ("perl -MList::Util -e 1 /f", [(READS, "1"), (READS, "/f")]),
        ("git push ../bare.git main", [(FILLS, "push"), (FILLS, "../bare.git"), (FILLS, "main")]),
        ("git clone a /d", [(MAKES, "/d")]),
        ("git log /k", []),
        ("git-receive-pack ../bare.git", [(FILLS, "../bare.git")]),
        ("cat '~/k'", [(READS, "./~/k")]),  # no shell has expanded it
        ("sh -c 'cat /k >/o'", [(WRITES, "/o")]),
        ("bash -l -c 'cat /k'", []),
        ("bash script /k", [(READS, "script"), (READS, "/k")]),
    ],
)
def test_words(line: str, words: list[tuple[Use, str]]) -> None:
    argv = shlex.split(line)
    assert [tuple(each) for each in file_words(name_of(argv), argv)] == words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("echo x >> ~/.bashrc", [(WRITES, "~/.bashrc")]),
        ('echo x >"$HOME/a b" 2>&1 </k', [(WRITES, "~/a b"), (READS, "/k")]),
        ("x >| a &>b &>>c >&d <>e", [(WRITES, each) for each in "abcde"]),
        ("echo 'a > /b' \"c > /d\" \\> /e", []),
        ("eval 'cat >> ~/.profile' \\< /dev/null && pwd -P >| /tmp/cwd",
         [(WRITES, "~/.profile"), (WRITES, "/tmp/cwd")]),
        ("cd /d && echo x > f; echo > /g", [(WRITES, "/d/f"), (WRITES, "/g")]),
        ("cd $D; echo > f", [(WRITES, "/nonexistent/f")]),
        ("cat <<EOF >~/f\na > /b\nEOF\necho >/c", [(WRITES, "~/f")]),
        ("cat <<<word >/c", [(WRITES, "/c")]),
        ("echo x > $D/f > `f` > *.c", []),
        ("echo 'open > /f", []),
        ("x 2>&- >&2 <&3", []),
    ],
)  # fmt: skip
def test_redirections(line: str, words: list[tuple[Use, str]]) -> None:
    assert [tuple(each) for each in redirections(line)] == words


def test_an_answer_is_no_failure() -> None:
    for line, status in (
        ("cat /k", 1),
        ("grep x /k", 2),
        ("diff a b", 2),
        ("git push", 1),
        ("git clone a", 128),
    ):
        argv = line.split()
        assert fails_from(name_of(argv)) == status


@pytest.mark.parametrize("text", ['"', "'", "\\", '"\\', "<<a\n", "'\"", "eval '", "$(", "a>"])
def test_a_hostile_line_is_read_in_linear_time(text: str) -> None:
    """Only so much of it: without the bound, this takes minutes."""
    for _ in range(100):
        list(redirections(text * 100_000))
