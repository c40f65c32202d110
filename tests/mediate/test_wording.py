from sigwrap.approve.requests import command_line, denial


def test_a_denial_names_what_why_the_rule_and_the_policy() -> None:
    assert denial("git push --force", "force-push", "agent-default", "left to people") == (
        "sigwrap: denied: git push --force: left to people (rule force-push, policy agent-default)"
    )
    assert denial("ls", "quiet", "mine", "") == ("sigwrap: denied: ls (rule quiet, policy mine)")
    assert denial("x", "builtin:sigwrap", "mine", "why") == (
        "sigwrap: denied: x: why (rule builtin:sigwrap)"
    )


def test_a_long_line_is_cut_stays_one_and_no_escape_comes_through() -> None:
    line = denial("\x1b[2J" + "a" * 500, "quiet", "mine", "")
    assert "\x1b" not in line
    assert "… (rule quiet, policy mine)" in line
    assert len(line) < 220
    assert denial("x", "r", "mine", "one\ntwo").count("\n") == 0


def test_a_command_line_is_as_it_was_typed_and_names_the_file_that_it_is() -> None:
    for path, arguments, name, said in (
        ("ls", "-l x", "ls", "ls -l x"),
        ("./ls", "", "ls", "./ls"),
        ("scripts/ls", "x", "tac", "scripts/ls x (tac)"),
        ("/proc/self/fd/4", "", "tac", "/proc/self/fd/4 (tac)"),
        ("b/x", "", "my tool", "b/x ('my tool')"),
        ("b/x", "'(ls)'", "\x1b", "b/x '(ls)' ($'\\e')"),
        (f"{'./' * 70}b/tac", "x", "tac", f"{'./' * 17}…{'./' * 15}b/tac x"),
    ):
        assert command_line(path, arguments, name) == said


def test_however_long_the_rest_is_the_file_is_named() -> None:
    for path, name in (("a/ls", "tac"), ("\x1b" * 500 + "/tac", "tac"), ("x/" * 500, "t" * 500)):
        line = command_line(path, "y" * 500, name)
        assert len(line) <= 120
        assert name[:30] in line
        assert line in denial(line, "quiet", "mine", "")
