"""Each command of a line is judged by the policy, and the strictest answer holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from sigwrap.cli.hook_facts import ThisMachine
from sigwrap.hooks.judged_line import judged
from sigwrap.hooks.shell_reader import read_line
from sigwrap.hooks.verdict import Answer, Verdict, combined
from sigwrap.policy.judge.engine import Engine, is_system_file
from sigwrap.start.policy_files import host_variables, load_policy

NO_OPINION, ASK, DENY = Answer

POLICY = """
version: 1
name: lines
defaults: {command: audit, signal: deny, file: allow}
command_rules:
  - {name: publish, commands: [npm], subcommands: [publish], decision: approve}
  - {name: force, commands: [git], subcommands: [push], args_patterns: ["^--force$"],
     decision: deny, message: not on main}
  - {name: tagged, commands: [git], subcommands: [tag], flags: [f], decision: deny}
  - {name: exact, commands: [make], args: [deploy], decision: deny}
  - {name: root, commands: [rm], paths: [/, /etc], decision: deny}
  - {name: loaded, commands: [make], loads_code: true, decision: deny}
  - {name: instead, commands: [pip], decision: redirect, redirect_to: {command: uv}}
  - {name: lenient, commands: [curl], args_patterns: ["^--version$"], decision: allow}
  - {name: others, commands: [curl], decision: deny}
file_rules:
  - {name: secrets, paths: ["${PROJECT_ROOT}/secret"], operations: [read, write, create],
     decision: deny}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for name in ("a.o", "b.o", "secret", ".hidden"):
        (folder / name).touch()
    (folder / "links").mkdir()
    (folder / "links" / "root").symlink_to("/")
    (folder / "links" / "deep").symlink_to("/usr/bin")
    (folder / "policy.yaml").write_text(POLICY)
    return folder


@pytest.fixture(scope="module")
def engine(project: Path) -> Engine:
    variables = host_variables(str(project))
    return Engine(load_policy(str(project / "policy.yaml"), variables=variables))


def verdict(engine: Engine, project: Path, line: str, *, inside: bool = False) -> Verdict:
    read = read_line(line, folder=str(project), home="/home/u", depth=2)
    return combined(judged(read, engine, ThisMachine(engine), inside=inside))


def test_a_line_gets_the_strictest_answer(engine: Engine, project: Path) -> None:
    for line, answer in [
        ("ls -la; echo hi", NO_OPINION),
        ("git push", NO_OPINION),
        ("npm publish", ASK),
        ("git push --force", DENY),
        ("ls | npm publish && git push --force", DENY),
        ("x=$(git push --force)", DENY),
        ("sudo env A=1 sh -c 'git push --force'", DENY),
        ("f() { git push --force; }", DENY),
        ("cat <<E\n$(git push --force)\nE", DENY),
        ("git 'push' \"--\"force", DENY),
        ("/usr/bin/git push --force", DENY),
        ("strace -f git push --force", DENY),
        ("unshare -r git push --force", DENY),
        ("strace npm publish", ASK),
        ("strace -o log git status", NO_OPINION),
        ("ssh localhost git push --force", DENY),
        ("ssh example.com git push --force", NO_OPINION),
        ("git rebase -x 'git push --force' main", DENY),
        ("git -c alias.x='!git push' x --force", DENY),
        ("git -c core.pager=cat log", NO_OPINION),
        ("true && git push 2>new --force", DENY),
        ("GIT_PAGER='git push --force' git log", DENY),
        ('echo "${f%$(git push --force)}"', DENY),
        ("su -c 'git push --force'", DENY),
        ("chroot / rm -rf etc", DENY),
        ("strace -E LD_PRELOAD=./x make", DENY),
        ("make SHELL=/bin/bash", NO_OPINION),
        ("timeout --kill 5 9 git push --force", DENY),
        ("xargs -I{} git {} --force", ASK),
        ("ls | xargs", NO_OPINION),
        ("timeout 5 $x", ASK),
        ('exec env "$@"', ASK),
        ("busybox $x", ASK),
        ("time nice $(x)", ASK),
        ('eval "$x"', ASK),
        ('eval "$x"; git push --force', DENY),
        ('npm "$x"', ASK),
        ('npm run "$x"', NO_OPINION),
        ("npm $x run", ASK),
        ("npm test $x", NO_OPINION),
        ("git push $x", ASK),
        ("git tag --forc x", DENY),
        ("git tag $x", ASK),
        ("make deploy", DENY),
        ("make $x", ASK),
        ("make 'x' y", NO_OPINION),
        ("git status $x", NO_OPINION),
        ("ls $x", NO_OPINION),
        ("rm $x", ASK),
        ("rm *.o", NO_OPINION),
        ("rm -rf /*", DENY),
        ("rm -rf /etc/*", DENY),
        ("rm -rf /etc/", DENY),
        ("rm -rf links/root/etc", DENY),
        ("rm -rf links/deep/../../etc", DENY),
        ("cd links/root && rm -rf etc", DENY),
        ("rm -rf links/root", NO_OPINION),
        ("rm -rf /e[t'c']", ASK),
        ("cat < <(ls)", NO_OPINION),
        (". ./secret", DENY),
        ("cd / && rm -rf etc", DENY),
        ("cd /; rm -rf etc", DENY),
        ("time cd / && rm -rf etc", DENY),
        ("time LD_PRELOAD=./x make", DENY),
        ("time export LD_PRELOAD=./x; make", DENY),
        ("command declare -x LD_PRELOAD=./x; make", DENY),
        ("command export LD_PRELOAD+=./x; make", DENY),
        ('cd "$x" && rm -rf etc', ASK),
        ('cd "$x" && rm -rf *', ASK),
        ('cd "$x" && rm a.o && git status', NO_OPINION),
        ('cd "$x" && git push --force', DENY),
        ("env -C / rm -rf etc; sudo --chdir=/ ls", DENY),
        ("sudo --version; sudo -l; env -u C ls", NO_OPINION),
        ("ls /[[:alpha:]]*", NO_OPINION),
        ("curl --version", NO_OPINION),
        ("curl x", DENY),
        ("pip install x", DENY),
        ("LD_PRELOAD=./x make", DENY),
        ("export LD_PRELOAD=./x; make", DENY),
        ("A=1 make", NO_OPINION),
        ("cat < secret", DENY),
        ("echo > ./secret", DENY),
        ("echo > a.o", NO_OPINION),
        ("echo > new", DENY),
        ('echo > "$x"', ASK),
        ("kill -9 1", ASK),
        ("git() { :; }; git push", ASK),
        ("git() { :; }; unset -f git; git push --force", DENY),
    ]:
        found = verdict(engine, project, line)
        assert found.answer is answer, found.findings


def test_a_lenient_rule_that_only_may_hold_counts_with_what_comes_behind_it(
    engine: Engine, project: Path
) -> None:
    assert verdict(engine, project, "curl --version $x").answer is ASK


def test_inside_a_session_only_denials_are_left(engine: Engine, project: Path) -> None:
    """What is asked about, replaced or not known, that session sees to."""
    for line in ("eval $x", "npm publish", "pip install x", "rm $x", "kill 1", "echo > $x"):
        assert verdict(engine, project, line, inside=True).answer is NO_OPINION, line
    assert verdict(engine, project, "git push --force", inside=True).answer is DENY


def test_the_reason_names_each_command_with_its_rule(engine: Engine, project: Path) -> None:
    reason = verdict(engine, project, "git push --force; curl x; npm publish").reason
    assert reason == (
        "sigwrap: denied: git push --force: not on main (rule force, policy lines); "
        "curl x: not allowed (rule others, policy lines). Do not work around this; tell the user."
    )


def test_a_reason_is_one_line_of_bounded_length(engine: Engine, project: Path) -> None:
    line = "; ".join(f"curl {number}{'x' * 500}\x1b" for number in range(50))
    reason = verdict(engine, project, line).reason
    assert reason.partition(". Do not")[0].endswith("; and 45 more") and len(reason) < 1000
    assert reason.isprintable()


def test_a_tool_that_comes_before_the_systems_in_path(
    engine: Engine, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run knows which ones its session has changed; without a run, each of them is a shadow."""
    folder = project / "bin"
    folder.mkdir()
    (folder / "ls").write_text("#!/bin/sh\n")
    (folder / "ls").chmod(0o755)
    (folder / "cat").symlink_to("/usr/bin/env")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    alone = ThisMachine(engine, runs_in_session=False)
    (ls,) = alone.request(("ls",), str(project), 1, frozenset()).programs
    assert ls.path == str(folder / "ls") and ls.shadows.endswith("/ls")
    for name in ("ls", "cat"):
        (tool,) = ThisMachine(engine).request((name,), str(project), 1, frozenset()).programs
        assert not is_system_file(tool)


def test_globs_are_as_bash_has_them(engine: Engine, project: Path) -> None:
    machine, folder = ThisMachine(engine), str(project)
    assert machine.names("*.o", folder) == ("a.o", "b.o")
    assert machine.names("[!a].o", folder) == machine.names("[^a].o", folder) == ("b.o",)
    assert machine.names(".h*", folder) == (".hidden",)
    assert machine.names(f"{folder}/*t", "") == (f"{folder}/secret",)
    assert machine.names("*.none", folder) == ()
    assert machine.names("[[:alpha:]]", folder) is None
    assert machine.names("*", "") is None
    assert machine.names(f"../{project.name[:-1]}[0-9]/a.?", folder) == (f"../{project.name}/a.o",)
