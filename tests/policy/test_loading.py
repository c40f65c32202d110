"""Variables that make a program load other code."""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.loading import loading_variables


@pytest.mark.parametrize(
    ("program", "variable"),
    [
        ("cat", "LD_PRELOAD"),
        ("cat", "GCONV_PATH"),
        ("node", "NODE_OPTIONS"),
        ("npm-cli.js", "NODE_OPTIONS"),
        ("python3.11", "PYTHONPATH"),
        ("ruby3.1", "RUBYOPT"),
        ("bash", "BASH_ENV"),
        ("bash", "BASH_FUNC_ls%%"),
        ("git", "GIT_SSH_COMMAND"),
        ("git", "GIT_CONFIG_COUNT"),
        ("git-status", "GIT_EXTERNAL_DIFF"),
    ],
)
def test_it_matters_to_the_program_that_reads_it(program: str, variable: str) -> None:
    assert loading_variables([program], [(variable, b"x")], {}) == (variable,)


@pytest.mark.parametrize(
    ("program", "variable"),
    [("cat", "NODE_OPTIONS"), ("cat", "PAGER"), ("nproc", "PYTHONPATH"), ("cat", "LANG")],
)
def test_it_does_not_matter_to_others(program: str, variable: str) -> None:
    assert loading_variables([program], [(variable, b"x")], {}) == ()


def test_the_users_own_value_is_no_news() -> None:
    own = {"LD_LIBRARY_PATH": b"/opt"}
    assert loading_variables(["cat"], [("LD_LIBRARY_PATH", b"/opt")], own) == ()
    assert loading_variables(["cat"], [("LD_LIBRARY_PATH", b"/x")], own) == ("LD_LIBRARY_PATH",)
    assert loading_variables(["cat"], [("LD_LIBRARY_PATH", b"")], own) == ()
    twice = [("LD_LIBRARY_PATH", b"/opt"), ("LD_LIBRARY_PATH", b"/x")]
    assert loading_variables(["cat"], twice, own)
