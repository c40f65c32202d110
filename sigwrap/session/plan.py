"""Plan a run from its settings and its policy; handle agents that have a preset.

Errors in them appear before anything has started. Modules that few runs need are imported here,
because the supervisor imports nothing later.
"""

from __future__ import annotations

import os

from sigwrap import errors
from sigwrap.agent.watches import DriftWatch
from sigwrap.bare import TYPE_CHECKING, NamedTuple
from sigwrap.control import killswitch
from sigwrap.errors import UsageError
from sigwrap.events import Payload
from sigwrap.kernel import procfs
from sigwrap.log.folder import default_store
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.environment import KILLSWITCH_URL
from sigwrap.policy.language.document import policy_texts
from sigwrap.session.launch import Tell
from sigwrap.session.settings import DEFAULT_JOIN_IDLE_S, RunSettings
from sigwrap.start import onefile
from sigwrap.start.command import CommandError, Inherited, find_program
from sigwrap.start.policy_files import host_variables, load_profile, load_with_sources
from sigwrap.text import masked, printable, shell_words, shortened

if TYPE_CHECKING:
    from sigwrap.control.remote_switch import RemoteSwitch
    from sigwrap.control.usage_limits import Usage
    from sigwrap.join.joins import Joins
    from sigwrap.network.handler import Network
    from sigwrap.policy.presets import Preset


class Plan(NamedTuple):
    store: str
    stores: tuple[str, ...]  # that can hold an effective kill switch
    engine: Engine
    policy_texts: Payload
    profile: DriftWatch | None
    without: list[str]  # missing protection
    # None if the run has none
    remote_switch: RemoteSwitch | None
    joins: Joins | None
    usage: type[Usage] | None
    network: type[Network] | None


def plan_of(settings: RunSettings, environment: dict[bytes, bytes], *, tell: Tell) -> Plan:
    if settings.join_idle_s != DEFAULT_JOIN_IDLE_S and not settings.join_name:
        raise UsageError("--join-idle, but no session to join", "name it: --join-name NAME")
    remote_switch = _remote_switch(settings, environment)
    as_text = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
    store = settings.store or default_store(as_text)
    # This process already has the supervisors' name and blocks the kill switch's signal. So if the
    # switch is turned on after this look, `sigwrap killswitch on` finds it.
    stores = killswitch.stores(store, as_text)
    without = killswitch.refuse_if_on(stores, settings.store)
    for each in without:
        tell(each)
    variables = host_variables(settings.root)
    policy, sources = load_with_sources(settings.policy, variables=variables)
    engine = Engine(policy)
    profile = None
    if settings.profile:
        profile = DriftWatch(load_profile(settings.profile, variables=variables))
    joins: Joins | None = None
    if settings.join_name:
        from sigwrap.join import joins as joined

        joins = joined.Joins(settings, tell)
    usage: type[Usage] | None = None
    if policy.limits.cpu_time_s or policy.limits.memory_bytes:
        from sigwrap.control import usage_limits as usage_module

        usage = usage_module.Usage
    network: type[Network] | None = None
    if engine.network.must_mediate:
        from sigwrap.network import handler as network_module

        network = network_module.Network
    onefile.release_unpacked(for_stubs=policy.has_recordings)
    return Plan(
        store=store,
        stores=stores,
        engine=engine,
        policy_texts=policy_texts(sources, variables),
        profile=profile,
        without=without,
        remote_switch=remote_switch,
        joins=joins,
        usage=usage,
        network=network,
    )


def _remote_switch(settings: RunSettings, environment: dict[bytes, bytes]) -> RemoteSwitch | None:
    by_variable = os.fsdecode(environment.get(KILLSWITCH_URL.encode(), b""))
    url = settings.killswitch_url or by_variable
    if not url:
        if settings.killswitch_fail_closed:
            raise UsageError(
                "--killswitch-fail-closed, but there is no kill switch to poll",
                "name it: --killswitch-url URL, or $SIGWRAP_KILLSWITCH_URL",
            )
        return None
    from sigwrap.control.remote_switch import RemoteSwitch

    where = "--killswitch-url" if settings.killswitch_url else f"${KILLSWITCH_URL}"
    return RemoteSwitch(
        url, where, environment=environment, fail_closed=settings.killswitch_fail_closed
    )


# Handle agents that have a preset (policies/presets), started with or without it.

_CHARACTERS_SHOWN = 60


class _Daemon(NamedTuple):
    pid: int
    argv: tuple[str, ...]

    def __str__(self) -> str:
        return printable(shortened(shell_words(self.argv), _CHARACTERS_SHOWN))


class Agent:
    def __init__(self, name: str, *, by_preset: bool) -> None:
        from sigwrap.policy.presets import PRESETS  # few runs need it

        self._preset = PRESETS[name]
        self._by_preset = by_preset

    def find(self, command: str, inherited: Inherited) -> tuple[bytes, Inherited]:
        """Return the program and what it inherits."""
        if self._by_preset:
            inherited = _with_variables(inherited, self._preset)
        try:
            return find_program(command, inherited.environment), inherited
        except CommandError as missing:
            if missing.status != errors.NOT_FOUND:
                raise
            hint = f"to install it: {self._preset.install}"
            raise CommandError(missing.message, missing.status, hint) from missing

    def warn_of_sandbox(self, command: tuple[str, ...], policy: str, tell: Tell) -> None:
        """Tell about the agent's own sandbox, under a policy with file rules."""
        preset = self._preset
        without = " ".join(preset.without_sandbox[:1])
        if self._by_preset and without and without in " ".join(command):
            tell(f"{preset.name}'s own sandbox is off: the file rules of {policy} protect files")
        elif preset.makes_sandbox(command):
            tell(
                f"the file_rules of {policy} forbid mounts, so {preset.program} cannot make its "
                f"own sandbox, and commands in it fail (start without it: sigwrap {preset.name})"
            )

    def daemons_outside(self, tell: Tell) -> list[str]:
        """Warn of each daemon, and return them for the log."""
        found = _running_daemons(self._preset)
        for each in found:
            tell(_warning(each, self._preset, is_kept_from_it=self._by_preset))
        return [f"{each.pid} {' '.join(masked(each.argv))}" for each in found]


def _with_variables(inherited: Inherited, preset: Preset) -> Inherited:
    added = {os.fsencode(name): os.fsencode(value) for name, value in preset.environment}
    return inherited._replace(environment={**added, **inherited.environment})


def _running_daemons(preset: Preset) -> list[_Daemon]:
    """Find the agent's daemons that run as the same user."""
    found = []
    for pid in procfs.all_pids() if preset.daemons else ():
        try:
            if procfs.file_status(f"/proc/{pid}").st_uid != os.geteuid():
                continue
        except OSError:
            continue  # it has ended
        if argv := preset.as_daemon(procfs.arguments(pid)):
            found.append(_Daemon(pid, argv))
    return sorted(found)


def _warning(daemon: _Daemon, preset: Preset, *, is_kept_from_it: bool) -> str:
    """Return the warning. `is_kept_from_it`: the preset keeps the agent from using the daemon."""
    said = f"{daemon} (PID {daemon.pid}) runs outside this session"
    if is_kept_from_it:
        return (
            f"{said}: sigwrap keeps {preset.program} from using it, but does not judge other work "
            f"handed to it (stop it: {preset.stop})"
        )
    return (
        f"{said}; sigwrap does not judge work handed to it (stop it: {preset.stop}; or run "
        f"sigwrap {preset.name}, which does not use it)"
    )
