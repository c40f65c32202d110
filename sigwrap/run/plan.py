"""Plan a run from its settings and its policy.

Errors in them appear before anything has started. Modules that few runs need are imported here,
because the supervisor imports nothing later.
"""

from __future__ import annotations

import os

from sigwrap.agent.watches import DriftWatch
from sigwrap.bare import TYPE_CHECKING, NamedTuple
from sigwrap.errors import UsageError
from sigwrap.events import Payload
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.environment import KILLSWITCH_URL
from sigwrap.policy.language.document import policy_texts
from sigwrap.run.lacking import Tell
from sigwrap.run.settings import DEFAULT_JOIN_IDLE_S, RunSettings
from sigwrap.start import onefile, own_code
from sigwrap.start.policy_files import host_variables, load_profile, load_with_sources
from sigwrap.store import killswitch
from sigwrap.store.location import default_store

if TYPE_CHECKING:
    from sigwrap.run.joined.joins import Joins
    from sigwrap.run.network import Network
    from sigwrap.run.remote_switch import RemoteSwitch
    from sigwrap.run.usage import Usage


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
        from sigwrap.run.joined import joins as joined

        joins = joined.Joins(settings, tell)
    usage: type[Usage] | None = None
    if policy.limits.cpu_time_s or policy.limits.memory_bytes:
        from sigwrap.run import usage as usage_module

        usage = usage_module.Usage
    network: type[Network] | None = None
    if engine.network.must_mediate:
        from sigwrap.run import network as network_module

        network = network_module.Network
    own_code.read_what_is_used_later(needs_patterns=policy.has_patterns)
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
    from sigwrap.run.remote_switch import RemoteSwitch

    where = "--killswitch-url" if settings.killswitch_url else f"${KILLSWITCH_URL}"
    return RemoteSwitch(
        url, where, environment=environment, fail_closed=settings.killswitch_fail_closed
    )
