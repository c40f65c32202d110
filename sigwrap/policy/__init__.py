"""Policies: a policy and the description of a request in, a decision out.

Nothing here touches the kernel, the clock or the process table, and nothing reads a file: texts
are handed in (start/policy_files.py reads them).

problems   everything that is wrong with a policy, each with its line
judge      a policy's rules, and the engine that decides a request by them
language   a policy's text, to rules
signed     the text of a signed policy, and the public key
ed25519    signatures
presets    how agents are run by their names alone
shipped    the shipped policies, checked when sigwrap was built (not in the repository)
tools      what `sigwrap policy` does with a policy, and the generated documents
"""

SHIPPED = ("agent-default", "agent-strict", "agent-observe", "ci")


def is_url(selector: str) -> bool:
    return selector.lower().startswith(("https://", "http://"))
