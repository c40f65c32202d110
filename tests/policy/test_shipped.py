"""The shipped policies do what they are for; each one's own `tests:` say what that is."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from sigwrap.errors import PolicyError
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.environment import judge_names
from sigwrap.policy.judge.request import (
    Action,
    CommandRequest,
    Program,
    SignalRequest,
    TargetType,
    with_implied,
)
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.judge.signals import ALL, signal_name
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.lint import lint
from sigwrap.policy.language.parse import parse_policy
from sigwrap.policy.tools.cases import command_request, run_cases
from sigwrap.policy.tools.shipped import module_text
from sigwrap.policy.tools.show import policy_text
from sigwrap.start.policy_files import (
    SHIPPED,
    find_base,
    load_policy,
    load_with_sources,
    read_source,
)

ROOT = Path(__file__).parents[2]
VARIABLES = {"PROJECT_ROOT": "/project/app", "HOME": "/home/user", "USER": "user", "TMPDIR": "/tmp"}


@cache
def load(name: str) -> Policy:
    return load_policy(name, variables=VARIABLES)


@cache
def engine_of(name: str) -> Engine:
    return Engine(load(name))


def test_the_list_is_what_is_in_the_folder() -> None:
    found = {each.name for each in (ROOT / "policies").glob("*.yaml")}
    assert {f"{name}.yaml" for name in SHIPPED} == found


@pytest.mark.parametrize("name", SHIPPED)
def test_its_own_cases_pass(name: str) -> None:
    results = list(run_cases(engine_of(name)))
    assert results and not [str(each) for each in results if not each.passed]


@pytest.mark.parametrize("name", SHIPPED)
def test_it_is_clean_and_says_what_it_is_for(name: str) -> None:
    policy = load(name)
    assert policy.name == name and policy.description
    assert lint(policy) == ()
    assert "defaults" in read_source(name).text or policy.bases


def test_the_built_module_is_that_of_the_texts() -> None:
    """make setup"""
    sources = [read_source(name) for name in SHIPPED]
    assert (ROOT / "sigwrap/policy/shipped.py").read_text() == module_text(sources)


def test_without_the_built_module_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sigwrap.policy.shipped", None)
    with pytest.raises(PolicyError, match=r"sigwrap/policy/shipped\.py is missing") as raised:
        load_with_sources("ci", variables=VARIABLES)
    assert "make setup" in raised.value.hint


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("more", [{}, VARIABLES, {"HOME": "/"}, {"HOME": "/home/a+b (c)[d]"}])
def test_a_run_has_the_policy_that_the_text_says(name: str, more: dict[str, str]) -> None:
    variables = {"PROJECT_ROOT": "/p", "TMPDIR": "/tmp", **more}
    policy, sources = load_with_sources(name, variables=variables)
    said = load_policy(name, variables=variables)
    assert policy.cases == ()
    assert policy_text(policy) == policy_text(said._replace(cases=()))
    assert [rule.place for rule in policy.command_rules] == [
        rule.place for rule in said.command_rules
    ]
    assert sources[0].text == read_source(name).text


def test_a_text_that_was_changed_since_is_read() -> None:
    source = read_source("ci")
    changed = source._replace(text=source.text.replace("name: ci", "name: mine"), for_a_run=True)
    policy = parse_policy(changed, variables=VARIABLES, find_base=find_base)
    assert policy.name == "mine" and policy.cases


def test_only_what_has_patterns_needs_their_engine() -> None:
    found = {name for name in SHIPPED if load(name).has_patterns}
    assert found == {"agent-default", "agent-strict", "ci"}


def test_no_run_reads_the_text_of_a_shipped_policy() -> None:
    look = (
        "import sys; from sigwrap.start.policy_files import load_with_sources;"
        "load_with_sources('ci', variables={'PROJECT_ROOT': '/p', 'TMPDIR': '/tmp'});"
        "print('yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_strict_runs_nothing_where_its_rules_are_not_held_or_the_systems_is_shadowed() -> None:
    policy = load("agent-strict")
    assert not policy.tolerates_old_kernels and policy.warnings == ()
    assert policy.trust.path_shadow is Action.DENY


@pytest.mark.parametrize(
    ("case", "decision"),
    [
        ("connect: unix:/home/user/.docker/run/docker.sock", "approve"),
        ("connect: unix:/var/run/postgresql/.s.PGSQL.5432", "allow"),
        ("connect: '8.8.8.8:53', protocol: udp", "allow"),
        ("listen: '0.0.0.0:8000'", "allow"),
        ("file: ~/.aws/credentials, operation: read", "deny"),
        ("file: ~/.local/state/sigwrap/x, operation: delete", "deny"),
        ("file: /tmp/x, operation: create", "allow"),
        ("file: /sys/fs/cgroup/cgroup.procs, operation: write", "deny"),
        ("file: /dev/sda, operation: write", "deny"),
        ("signal: 33, target: self", "allow"),
    ],
)
def test_more_of_agent_default(case: str, decision: str) -> None:
    """Its own `tests:` have one for each rule."""
    test = f"tests: [{{{case}, decision: {decision}}}]\n"
    source = Source("x.yaml", f"version: 1\nname: x\nextends: agent-default\n{test}")
    engine = Engine(parse_policy(source, variables=VARIABLES, find_base=find_base))
    assert [str(each) for each in run_cases(engine) if not each.passed] == []


OF_AN_AGENT = """
    ANTHROPIC_API_KEY AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY DATABASE_URL GH_TOKEN GITHUB_TOKEN
    GOOGLE_API_KEY HOME NPM_TOKEN OPENAI_API_KEY PATH SSH_AUTH_SOCK TERM
""".split()
OF_A_SERVER = """
    API_KEY AUTH_SECRET COOKIE_SECRET DJANGO_SECRET_KEY ENCRYPTION_KEY JWT_SECRET NEXTAUTH_SECRET
    SECRET_KEY SECRET_KEY_BASE SESSION_SECRET SIGNING_KEY SIGWRAP_KEY STRIPE_SECRET_KEY
""".split()


@pytest.mark.parametrize("name", SHIPPED)
def test_an_agent_keeps_what_it_works_with_and_a_job_keeps_all(name: str) -> None:
    judged = judge_names(load(name).env_policy, [*OF_AN_AGENT, *OF_A_SERVER])
    removed = [each.name for each in judged.removed]
    is_an_agents = name in ("agent-default", "agent-strict")
    assert removed == (OF_A_SERVER if is_an_agents else ["SIGWRAP_KEY"])


def test_ci_never_asks() -> None:
    """Every rule of the base that asks is decided by a rule above it, whatever the arguments."""
    engine = engine_of("ci")
    asking = [each for each in engine.policy.command_rules if each.decision is Action.APPROVE]
    assert asking
    for rule in asking:
        for command in rule.commands:
            for argument in (*rule.subcommands, "-S", "pip install", "-m"):
                for truncated in (False, True):
                    argv = [command.replace("*", "12"), argument, "install", "x"]
                    request = command_request(argv)._replace(truncated=truncated)
                    assert engine.decide_command(request).action is not Action.APPROVE


@pytest.mark.parametrize("name", ["agent-default", "agent-strict", "ci"])
def test_inside_all_is_free_but_what_ends_the_agent_and_nobody_outside_is_reached(
    name: str,
) -> None:
    engine = engine_of(name)
    for number, handled, target in product(ALL, (False, True), TargetType):
        signal = signal_name(number).removeprefix("SIG")
        stops = signal in "KILL STOP TERM INT HUP QUIT".split()
        crashes = signal in "ABRT BUS FPE ILL PWR SEGV STKFLT SYS TRAP XCPU XFSZ".split()
        harmless = signal in "CHLD CONT URG WINCH".split()
        request = SignalRequest(number, with_implied([target]), handled=handled)
        free = TargetType.SESSION in request.target_types
        if target in (TargetType.AGENT, TargetType.ANCESTORS) and name != "ci":
            debugs = signal == "USR1" and target is TargetType.AGENT
            free = not (stops or crashes or debugs) and (handled or harmless)
        expected = Action.ALLOW if free else Action.DENY
        assert engine.decide_signal(request).action is expected, (signal, target, handled)


@pytest.mark.parametrize("name", ["agent-default", "agent-strict"])
def test_a_worker_may_end_its_server_and_both_the_agent_and_its_peers(name: str) -> None:
    engine = engine_of(name)
    for target in ([TargetType.PEERS], [TargetType.PEERS, TargetType.ROOT, TargetType.ANCESTORS]):
        for number in ALL:
            request = SignalRequest(number, with_implied(target))
            assert engine.decide_signal(request).action is Action.ALLOW


@pytest.mark.parametrize(
    ("policy", "line", "file"),
    [
        ("agent-default", "npm test", "npm-cli.js"),
        ("ci", "cargo install x", "rustup"),
    ],
)
def test_tools_in_a_users_own_folder_are_known_by_their_files(
    policy: str, line: str, file: str
) -> None:
    """A version manager's `npm` is a link: its name allows nothing, its file's does."""
    argv = tuple(line.split())
    program = Program(path=f"/home/user/v/{file}", name=argv[0], argv=argv, system_file=False)
    decision = engine_of(policy).decide_command(CommandRequest(programs=(program,)))
    assert decision.action is Action.ALLOW


def test_a_file_and_the_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("version: 1\nname: base\ndefaults: {command: audit}\n")
    child = tmp_path / "child.yaml"
    child.write_text("version: 1\nname: child\nextends: base.yaml\n")
    assert load(str(child)).default_command is Action.AUDIT
    assert find_base("nowhere.yaml", read_source(str(child))) is None


def test_a_file_that_cannot_be_read_or_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="can't be read"):
        read_source(str(tmp_path))
    odd = tmp_path / "odd.yaml"
    odd.write_bytes(b"version: 1\nname: \xff\n")
    with pytest.raises(PolicyError, match=r"odd.yaml:2: not UTF-8"):
        read_source(str(odd))
