"""Denied actions that no proposed rule should allow, because they destroy a system or hand out the
machine's credentials."""

from __future__ import annotations

from sigwrap.events import DENIED_TYPES, Event, text, texts

# Rules of the shipped policies, by the start of their names.
_RULES = ("destroy-", "overwrite-system", "write-to-device", "format-disk", "cloud-credentials")
_DELETES = frozenset({"rm", "rmdir", "shred", "wipe", "srm"})
_SYSTEM = frozenset({"/", "/*", "/bin", "/boot", "/etc", "/home", "/lib", "/root", "/usr", "/var"})
_CREDENTIALS = frozenset({"169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254"})


def why_no_rule(event: Event) -> str:
    """Return why no rule is proposed that allows it, or ""."""
    if event.type not in DENIED_TYPES:
        return ""
    payload = event.payload
    if text(payload.get("address")) in _CREDENTIALS:
        return "this address hands out the machine's credentials; write the rule yourself"
    argv = texts(payload.get("argv"))
    is_delete = bool(argv) and argv[0].rpartition("/")[2] in _DELETES
    if text(payload.get("rule_name")).startswith(_RULES) or (is_delete and _SYSTEM & set(argv)):
        return "it can destroy a system or home directory; write the rule yourself"
    return ""
