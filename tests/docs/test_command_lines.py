"""Run every line of the documents that starts with `sigwrap`, with stand-ins for placeholders."""

from __future__ import annotations

import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sigwrap.session.settings import AGENTS
from tests.support.harness import UNDER_TEST, Running, Sigwrap
from tests.support.policies import policy
from tests.support.waiting import reader

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ASK = "\n  - {name: ask, commands: [waits], decision: approve}\n"

# What a document leaves open, and what is tried in its place.
STAND_INS = {
    "~/.local/bin": ".",
    "ID": "{id}",
    "HEAD": "{head}",
    "FILE…": "my-policy.yaml",
    "FILE": "my-policy.yaml",
    "SESSION…": "shown",
    "SESSION": "running",
    "NAME": "my-policy.yaml",
    "…": "--version",
}
PROGRAMS = {
    "npm": "#!/bin/sh\nexit 0\n",
    "my-agent": "#!/bin/sh\nexit 0\n",
    "my-server": "#!/bin/sh\nexit 0\n",
    "waits": "#!/bin/sh\nexit 0\n",
    "xdg-open": "#!/bin/sh\nexit 0\n",
    **dict.fromkeys(AGENTS, "#!/bin/sh\nexit 0\n"),
}
# Lines that end otherwise than with 0, or that are a command's name and no whole line.
STATUSES = {
    "sigwrap -p agent-strict -- my-agent": 126,  # it needs approval, and there is no approver here
    "sigwrap policy diff agent-default ci": 1,  # they differ
}
WHOLE = {
    "sigwrap hook run": "sigwrap hook run --help",
    "sigwrap hook install claude-code": "sigwrap hook install claude-code --yes",
    "sigwrap -c": "sigwrap -c true",
    "sigwrap approve": "sigwrap approve {id}",
    "sigwrap deny": "sigwrap deny {id}",
    "sigwrap --notify COMMAND -- …": "sigwrap --notify true -- true",
    "sigwrap -c STRING": "sigwrap -c true",
    "sigwrap export": "sigwrap export --format jsonl",
    # A bucket, an engine or a server would be needed: tests/fleet and tests/process have them.
    "sigwrap ship": "sigwrap ship --help",
    "sigwrap ship --to otlp+https://HOST[:PORT][/PATH]": "sigwrap ship --help",
    "sigwrap --ship s3://logs/agents --ship-credential-fd 3 -- claude 3< <(aws configure "
    "export-credentials --format process)": "sigwrap run --help",
    "sigwrap ship --all --to s3://logs/laptops": "sigwrap ship --help",
    'sigwrap query --lake s3://logs/ci "…"': "sigwrap query --help",
    'sigwrap query --lake s3://logs/ci "select repo, reason from sessions"': (
        "sigwrap query --help"
    ),
    "sigwrap verify --lake s3://logs/ci --strict": "sigwrap verify --help",
    "sigwrap lake compact": "sigwrap lake compact --help",
    "sigwrap lake compact --at s3://logs/ci": "sigwrap lake compact --help",
    "sigwrap lake report": "sigwrap lake report --help",
    "sigwrap lake report --at s3://logs/ci -o report.html": "sigwrap lake report --help",
    "sigwrap lake sql --engine clickhouse --at s3://logs/ci | clickhouse-client --multiquery": (
        "sigwrap lake sql --engine clickhouse --at s3://logs/ci"
    ),
    "sigwrap -p https://example.com/policy.yaml --policy-key /etc/sigwrap/fleet.pub -- npm test": (
        "sigwrap -p ci -- npm test"
    ),
    "sigwrap policy check": "sigwrap policy check ci",
    "sigwrap policy check FILE": "sigwrap policy check ci",
    "sigwrap policy diff": "sigwrap policy diff ci ci",
    "sigwrap policy try": "sigwrap policy try agent-default --exit-zero",
    "sigwrap replay --policy": "sigwrap replay --policy agent-default --exit-zero",
    "sigwrap policy init": "sigwrap policy init first",  # this folder has a policy.yaml
}


# Lines that run until the user leaves, and what they show first.
STAY = {
    "sigwrap watch --format jsonl": rb'"kind": "board"',
    "sigwrap watch": rb"sigwrap watch   ",
    "sigwrap serve": rb"http://\S+/in/",
}


def fenced(text: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    blocks = [block for language, block in found if language != "text"]
    # What is indented is what a command says.
    lines = (line.partition("  #")[0].rstrip() for block in blocks for line in block.splitlines())
    return [line for line in lines if line.startswith("sigwrap ")]


def inline(text: str) -> list[str]:
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [span for span in re.findall(r"`([^`\n]+)`", prose) if span.startswith("sigwrap ")]


def command_lines() -> list[str]:
    texts = [document.read_text(encoding="utf-8") for document in DOCUMENTS]
    return sorted({line for text in texts for line in fenced(text) + inline(text)})


def policies() -> list[str]:
    """Return the whole policies among the documents' examples."""
    texts = [document.read_text(encoding="utf-8") for document in DOCUMENTS]
    return [block for text in texts for block in policies_in(text)]


def policies_in(text: str) -> list[str]:
    blocks = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [block for block in blocks if re.search(r"^version:", block, re.MULTILINE)]


@pytest.fixture(scope="module")
def reader_of_documents() -> Iterator[Sigwrap]:
    """Run sigwrap in a directory with the cookbook's first recipe and one session."""
    folder = Path(tempfile.mkdtemp(prefix="sigwrap-test-"))
    subject = Sigwrap(folder, folder / "store")
    (folder / "bin").mkdir()
    for name, text in PROGRAMS.items():
        # Files of the same content count as copies, where they are as new as these.
        (folder / "bin" / name).write_text(f"{text}# {name}\n")
        (folder / "bin" / name).chmod(0o755)
    subject.env["PATH"] = f"{folder}/bin:{Path(UNDER_TEST).parent}:{subject.env['PATH']}"
    recipes = (ROOT / "docs" / "cookbook.md").read_text(encoding="utf-8")
    (folder / "my-policy.yaml").write_text(policies_in(recipes)[0])
    assert subject.run("--name", "shown", "--", "true").returncode == 0
    yield subject
    subject.clean_up()
    shutil.rmtree(folder)


@pytest.fixture
def waiting(reader_of_documents: Sigwrap) -> Iterator[str]:
    """Start a run that waits for approval, and yield the id of its request."""
    subject = reader_of_documents
    line = ("-p", policy(subject.folder, ASK), "--name", "running", "--approvals", "control")
    process: Running = subject.start(*line, "--", "waits")
    yield reader(process.stderr).until(rb"sigwrap approve \w+").split()[-1].decode()
    process.kill()


@pytest.mark.parametrize("line", command_lines())
def test_a_line_of_the_documents(
    reader_of_documents: Sigwrap, line: str, request: pytest.FixtureRequest
) -> None:
    subject = reader_of_documents
    if line.startswith("sigwrap killswitch"):  # it ends all that this user has
        subject = request.getfixturevalue("alone")
    if line.startswith(("sigwrap signal", "sigwrap pause", "sigwrap resume", "sigwrap stop")):
        request.getfixturevalue("waiting")
    words = [STAND_INS.get(word, word) for word in shlex.split(WHOLE.get(line, line))]
    if "{id}" in words:
        words[words.index("{id}")] = request.getfixturevalue("waiting")
    if "{head}" in words:
        said = subject.run("--verbose", "--", "true").stderr
        words[words.index("{head}")] = said.rpartition(b"log head ")[2].split()[0].decode()
    is_once = "--format text" in line or "--full" in line
    shows = next((STAY[each] for each in STAY if line.startswith(each) and not is_once), None)
    if shows is not None:
        terminal = subject.terminal_for([UNDER_TEST, *words[1:]], env={"TERM": "xterm"})
        terminal.output.until(shows)
        terminal.press("c")
        assert terminal.await_status() in (0, 130)
        return
    done = subject.run(*words[1:])
    assert done.returncode == STATUSES.get(line, 0), done.stderr


@pytest.mark.parametrize("number", range(len(policies())))
def test_a_policy_of_the_documents(reader_of_documents: Sigwrap, number: int) -> None:
    subject = reader_of_documents
    text = policies()[number]
    (subject.folder / "example.yaml").write_text(text)
    for base in re.findall(r"^extends: (\S+\.yaml)$", text, re.MULTILINE):
        (shown,) = (block for block in policies() if block.startswith(f"# {base}\n"))
        (subject.folder / base).write_text(shown)
    done = subject.run("policy", "check", "example.yaml")
    assert done.returncode == 0
    verdict = re.fullmatch(
        rb"example.yaml: ok(, with warnings)?(; \d+ tests? pass(es)?)?\n", done.stdout
    )
    assert verdict is not None, done.stdout
    assert bool(verdict[2]) is ("\ntests:" in text)
