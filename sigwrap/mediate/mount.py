"""A mount: nothing is decided of it, but the supervisor has to know of it."""

from __future__ import annotations

from sigwrap.mediate.effects import Continue, Mediation, Unrecorded


def let_mount() -> Mediation:
    yield Continue(Unrecorded.MOUNT_IS_FREE)
