from sigwrap.mediate.wording import denial


def test_a_denial_names_what_the_rule_the_policy_and_the_next_step():
    assert denial("git push --force", "force-push", "agent-default", "left to people") == (
        "sigwrap: git push --force: denied by rule force-push of agent-default: left to people "
        "(sigwrap report tells more)"
    )


def test_without_a_message_it_says_the_rest():
    assert denial("ls", "quiet", "mine", "") == (
        "sigwrap: ls: denied by rule quiet of mine (sigwrap report tells more)"
    )


def test_a_built_in_rule_belongs_to_no_policy():
    assert "denied by rule builtin:sigwrap: nobody" in denial(
        "x", "builtin:sigwrap", "mine", "nobody"
    )


def test_a_long_command_line_is_cut_and_no_escape_comes_through():
    line = denial("\x1b[2J" + "a" * 500, "quiet", "mine", "")
    assert "\x1b" not in line
    assert "…: denied by rule quiet" in line
    assert len(line) < 220
