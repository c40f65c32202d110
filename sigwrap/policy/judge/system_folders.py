"""Folders with programs of the system, if only root can write to them.

A link in them (`sh` to dash, `awk` to mawk, `ls` to busybox) is the system's too, so its name says
what runs. In a folder that the session can write to, any file can be called `ls`.
"""

from __future__ import annotations

from sigwrap.policy.judge.request import Action, Decision, Program

SYSTEM_FOLDERS = (
    "/usr/",
    "/bin/",
    "/sbin/",
    "/lib/",
    "/lib32/",
    "/lib64/",
    "/libx32/",
    "/opt/",
    "/run/current-system/sw/bin/",
    "/nix/store/",
    "/gnu/store/",
)

# Folders of system commands in the usual order of PATH.
COMMAND_FOLDERS = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/run/current-system/sw/bin",
)


def may_be_the_systems(path: str) -> bool:
    """Return whether an absolute path is in such a folder; the caller checks its owner."""
    return path.startswith(SYSTEM_FOLDERS) and "/../" not in path and "/./" not in path


# Programs that shadow a system command on PATH: `trust.path_shadow`.

PATH_SHADOW_RULE = "trust.path_shadow"
_LONGEST_PATH = 200


def found_at(program: Program, folder: str) -> str:
    """Return the path at which the program was found from `folder`, or ""."""
    found = program.found
    if found.startswith("/") or not (found and folder):
        return found if found.startswith("/") else ""
    return f"{folder.rstrip('/')}/{found.removeprefix('./')}"


def held_against(
    decision: Decision, program: Program, reaction: Action, folder: str = ""
) -> Decision:
    """Return the decision on an exec of `program`, which shadows a system command.

    Denials and redirects stay.
    """
    marked = decision._replace(shadows=program.shadows)
    if decision.action in (Action.DENY, Action.REDIRECT):
        return marked
    if reaction is Action.DENY:
        return Decision(
            action=Action.DENY,
            rule=PATH_SHADOW_RULE,
            reason=f"path_shadow: {what_was_found(program, folder)} shadows {program.shadows}",
            message=_message(program, folder),
            shadows=program.shadows,
        )
    if decision.action is Action.ALLOW:
        reason = f"{decision.reason}; it shadows {program.shadows}"
        return marked._replace(action=Action.AUDIT, reason=reason)
    return marked


def what_was_found(program: Program, folder: str) -> str:
    """Describe the path found, and the file behind it if it is a link."""
    found = found_at(program, folder) or program.found
    target = _shown(program.path)
    return target if found in ("", program.path) else f"{_shown(found)} -> {target}"


def goes_by_its_own_name(program: Program) -> bool:
    return program.path.endswith(f"/{program.name}")


def _message(program: Program, folder: str) -> str:
    path, link = _shown(program.path), _shown(found_at(program, folder) or program.name)
    # The path of an interpreter alone would allow it under the name of any command.
    rule = (
        f"names it by path (commands: [{path}]) or sha256"
        if goes_by_its_own_name(program)
        else f"names the link and its file (commands: [{link}, {path}])"
    )
    return (
        f"{what_was_found(program, folder)} comes before {program.shadows} in PATH: "
        f"run the intended program by its full path, or add a rule that {rule}"
    )


def _shown(path: str) -> str:
    return path if len(path) <= _LONGEST_PATH else f"…{path[1 - _LONGEST_PATH :]}"
