"""The options of a run."""

from __future__ import annotations

from collections.abc import Mapping

from sigwrap.bare import Any, Enum, NamedTuple
from sigwrap.front.interrupts import InterruptsEnd

DEFAULT_POLICY = "agent-default"
AGENTS = ("claude", "codex", "gemini")  # that have a preset (policy/presets.py)
DEFAULT_GRACE_S = 10.0
DEFAULT_APPROVAL_TIMEOUT_S = 300.0
DEFAULT_UNATTENDED_TIMEOUT_S = 60.0
DEFAULT_JOIN_IDLE_S = 600.0
DEFAULT_SHIP_TIMEOUT_S = 30.0
LONGEST_LABEL = 200  # characters of its value
BELL = "bell"  # the terminal's bell, instead of a command that announces an approval request


class Nested(Enum):
    REFUSE = "refuse"
    JOIN = "join"


class ApprovalMode(Enum):
    """Places where a user may answer approval requests."""

    AUTO = "auto"  # the terminal, if there is one, and the control socket
    TTY = "tty"
    CONTROL = "control"
    DENY = "deny"


class Report(Enum):
    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def is_unattended(environment: Mapping[bytes, bytes]) -> bool:
    """Return whether the environment is that of a CI job."""
    return environment.get(b"CI", b"").lower() not in (b"", b"0", b"false")


# What a CI job's variables tell: GitHub and Forgejo, GitLab, Jenkins, Buildkite, CircleCI, Azure.
_CI_LABELS = {
    "repo": "GITHUB_REPOSITORY CI_PROJECT_PATH GIT_URL BUILDKITE_REPO CIRCLE_PROJECT_REPONAME "
    "BUILD_REPOSITORY_NAME",
    "revision": "GITHUB_SHA CI_COMMIT_SHA GIT_COMMIT BUILDKITE_COMMIT CIRCLE_SHA1 "
    "BUILD_SOURCEVERSION",
    "pipeline": "GITHUB_WORKFLOW CI_PIPELINE_NAME JOB_NAME BUILDKITE_PIPELINE_SLUG "
    "BUILD_DEFINITIONNAME",
    "run": "GITHUB_RUN_ID CI_PIPELINE_ID BUILD_NUMBER BUILDKITE_BUILD_NUMBER CIRCLE_WORKFLOW_ID "
    "BUILD_BUILDID",
    "job": "GITHUB_JOB CI_JOB_NAME STAGE_NAME BUILDKITE_LABEL CIRCLE_JOB AGENT_JOBNAME",
}


def ci_labels(environment: Mapping[bytes, bytes]) -> dict[str, str]:
    """Return the labels that the variables of a CI job give; none elsewhere."""
    if not is_unattended(environment):
        return {}
    found = {}
    for label, names in _CI_LABELS.items():
        values = (environment.get(name.encode(), b"") for name in names.split())
        if value := next(filter(None, values), b""):
            found[label] = _without_user(value.decode("utf-8", "replace"))[:LONGEST_LABEL]
    return found


def _without_user(value: str) -> str:
    """Return a URL without its user, which may be a token."""
    scheme, colon, rest = value.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{colon}{host.rpartition('@')[2]}{slash}{path}" if colon else value


class RunSettings(NamedTuple):
    command: tuple[str, ...]
    policy: str = DEFAULT_POLICY
    policy_key: str = ""  # for a policy by URL
    policy_fallback: str = ""
    root: str = "."
    approvals: ApprovalMode = ApprovalMode.AUTO
    approval_timeout_s: float = DEFAULT_APPROVAL_TIMEOUT_S
    unattended_timeout_s: float = DEFAULT_UNATTENDED_TIMEOUT_S
    notify: str = ""
    name: str = ""
    labels: tuple[str, ...] = ()  # NAME=VALUE
    store: str = ""
    grace_s: float = DEFAULT_GRACE_S
    report: Report = Report.AUTO
    verbose: bool = False  # the report also has the counts and the head of the log
    best_effort: bool = False
    nested: Nested = Nested.REFUSE
    durable: bool = False
    interrupt: InterruptsEnd = InterruptsEnd.AUTO
    die_by_signal: bool = False
    ends_with_caller: bool = False
    log_size_bytes: int = 0  # 0: the policy's limit
    killswitch_url: str = ""  # empty: $SIGWRAP_KILLSWITCH_URL
    killswitch_fail_closed: bool = False
    profile: str = ""
    preset: str = ""  # of an agent that is started by its name
    join_name: str = ""
    join_idle_s: float = DEFAULT_JOIN_IDLE_S
    rules_digest: str = ""  # of its policy and profile, if these are files
    door_fd: int = -1  # the listening socket for joining commands, already bound
    ship: str = ""  # the URL to ship to while the command runs
    ship_credential_fd: int = 0  # 0: none
    ship_timeout_s: float = DEFAULT_SHIP_TIMEOUT_S
    ship_required: bool = False
    session_id: str = ""  # empty: a new one


# Settings of a whole session, not of a command that joins it.
_OF_THE_SESSION = (
    *("policy", "root", "approvals", "approval_timeout_s", "unattended_timeout_s", "notify"),
    *("grace_s", "best_effort", "labels"),
    *("durable", "log_size_bytes", "killswitch_url", "killswitch_fail_closed", "profile"),
)


def as_json(settings: RunSettings) -> dict[str, object]:
    return {
        name: value.value if isinstance(value, Enum) else value
        for name, value in settings._asdict().items()
    }


def from_json(fields: dict[str, Any]) -> RunSettings:
    def restored(name: str, value: Any) -> Any:
        default = RunSettings._field_defaults.get(name)
        return type(default)(value) if isinstance(default, Enum) else value

    restored_fields = {name: restored(name, value) for name, value in fields.items()}
    return RunSettings(**{**restored_fields, "command": tuple(fields["command"])})


def differing(ours: RunSettings, theirs: dict[str, Any]) -> str:
    """Return the first setting that differs from a joining command's request. The policy always
    counts, others only if they are not the default."""
    own = as_json(ours)
    for name in _OF_THE_SESSION:
        asks = theirs.get(name)
        default = as_json(RunSettings(command=()))[name]
        if asks != own[name] and (name == "policy" or asks != default):
            option = name.removesuffix("_s").removesuffix("_bytes").replace("_", "-")
            return _with_option(option, own[name])
    if theirs.get("rules_digest") != ours.rules_digest:
        return f"with --policy {ours.policy} as it was when the session began"
    return ""


def _with_option(option: str, value: object) -> str:
    if not value or value is True:
        return f"{'with' if value else 'without'} --{option}"
    return f"with --{option} {f'{value:g}' if isinstance(value, float) else value}"
