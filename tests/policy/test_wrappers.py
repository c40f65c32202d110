from __future__ import annotations

import shlex

import pytest

from sigwrap.policy.judge.wrappers import MAX_WRAPPERS, plain_words, unwrap


@pytest.mark.parametrize(
    ("command", "inner"),
    [
        ("env rm x", ["rm x"]),
        ("env", []),
        ("env -i A=b C=d rm -rf x", ["rm -rf x"]),
        ("env -u HOME -C /tmp -- A=b rm x", ["rm x"]),
        ("env -S 'python3 -u' script", ["python3 -u script"]),
        ("env '-S python3 -u' script", ["python3 -u script"]),
        ("env --split-string='A=b rm' x", ["rm x"]),
        ("env -i -S 'rm x' y", ["rm x y"]),
        ("env -ivS 'rm x' y", ["rm x y"]),
        ("env -iu A rm x", ["rm x"]),
        ("xargs -0n 1 rm x", ["rm x"]),
        ("xargs -n1 rm x", ["rm x"]),
        ("env rm -S x", ["rm -S x"]),
        ("env -S", []),
        ("env -S 'a \"b' c", []),
        ("nice -5 rm x", ["rm x"]),
        ("nice -- -n 5 x", ["-n 5 x"]),
        ("nice -- -- x", ["-- x"]),
        ("timeout --signal=KILL 10s rm x", ["rm x"]),
        ("timeout --kill 5 10 rm x", ["rm x"]),
        ("timeout 10", []),
        ("sudo -u root A=b rm x", ["rm x"]),
        ("chroot --userspec root /srv rm x", ["rm x"]),
        ("xargs --max-lines rm x", ["rm x"]),
        ("busybox", []),
        ("busybox --list", []),
        ("busybox env rm x", ["env rm x", "rm x"]),
        (
            "sudo nice env A=b timeout 5 rm x",
            ["nice env A=b timeout 5 rm x", "env A=b timeout 5 rm x", "timeout 5 rm x", "rm x"],
        ),
        ("sh -c 'rm x'", []),
        ("rm env x", []),
        ("ld-linux-x86-64.so.2 --library-path /lib --argv0 x /bin/rm y", ["/bin/rm y"]),
        ("ld-musl-x86_64.so.1 -- /bin/rm y", ["/bin/rm y"]),
        ("ld --shared x", []),
        ("ld-gold x y", []),
        ("plugin.so x y", []),
    ],
)
def test_what_a_wrapper_is_about_to_run(command: str, inner: list[str]) -> None:
    argv = shlex.split(command)
    assert [list(each.argv) for each in unwrap(argv[0], argv)] == [
        shlex.split(each) for each in inner
    ]


@pytest.mark.parametrize(
    ("words", "run"),
    [
        (["node", "./x", "-S a"], ["node", "./x", "-S a"]),
        (["my node", "./x"], ["my node", "./x"]),
        (["-S node", "./x"], ["node", "./x"]),
        (["-Snode  --a=b,c", "./x y"], ["node", "--a=b,c", "./x y"]),
        (["-S\tnode\t \tx\t", "./x\ty"], ["node", "x", "./x\ty"]),
        (["-S\t-i\tnode", "./x"], []),
        (["-S env -S A=b node", "./x"], ["env", "-S", "A=b", "node", "./x"]),
        ([], []),
        ([""], [""]),
        (["-S", "A=b node"], []),
        (["-S ", "./x"], []),
        (["A=b", "./x"], []),
        (["-", "./x"], []),
        (["-i", "./x"], []),
        (["-vS node", "./x"], []),
        (["-S -i node", "./x"], []),
        (["-S A=b node", "./x"], []),
        (["-S node $A", "./x"], []),
        (["-S node #", "./x"], []),
        (["-S 'node'", "./x"], []),
        ([r"-S no\_de", "./x"], []),
        (["-S node\u00a0x", "./x"], []),
        (["-S node\x1cx", "./x"], []),
        (["-S node\nx", "./x"], []),
    ],
)
def test_which_words_are_all_that_env_does(words: list[str], run: list[str]) -> None:
    found = plain_words(["env", *words])
    assert found == tuple(run)
    assert not any(run) or unwrap("env", ["env", *words])[0].argv == found


def test_a_loader_may_give_another_name() -> None:
    line = "/lib64/ld-linux-x86-64.so.2 --argv0 rmdir /usr/bin/busybox /usr"
    box, applet = unwrap("ld-linux-x86-64.so.2", line.split())
    assert (box.argv, applet.argv) == (("/usr/bin/busybox", "/usr"), ("rmdir", "/usr"))
    assert applet.same_file
    assert len(unwrap("ld.so", ["ld.so", "--preload", "--argv0", "/usr/bin/true"])) == 1


def test_an_applet_is_known_by_its_link() -> None:
    for called in ("-rm", "-/bin/rm", "rm"):
        (applet,) = unwrap("busybox", [called, "/usr"])
        assert applet.argv[0].rpartition("/")[2] == "rm"
    assert unwrap("busybox", ["-busybox", "rm"])[0].argv == ("rm",)
    (applet,) = unwrap("busybox", ["/bin/rm", "-rf", "/"])
    assert applet.argv == ("/bin/rm", "-rf", "/") and applet.same_file


def test_wrappers_without_end_end() -> None:
    assert len(unwrap("nice", ["nice"] * 1000)) == MAX_WRAPPERS


def test_nothing_at_all() -> None:
    assert unwrap("env", []) == () == unwrap("busybox", []) == unwrap("env", ["env", ""])
