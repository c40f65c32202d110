"""The shipped policies, as `python -m sigwrap.policy.tools.shipped` has checked them.

agent_default   of policies/agent-default.yaml
agent_strict    of policies/agent-strict.yaml
agent_observe   of policies/agent-observe.yaml
ci              of policies/ci.yaml
presets         of policies/presets, by `python -m sigwrap.policy.tools.presets`
"""
