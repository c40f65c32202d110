"""Reads policies: the shipped ones, and files."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping

import sigwrap
from sigwrap.bare import Any
from sigwrap.errors import PolicyError, UsageError
from sigwrap.kernel.descriptors import open_plain_file
from sigwrap.policy import SHIPPED as SHIPPED
from sigwrap.policy import is_url
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.language.document import MAX_TEXT_CHARACTERS, Source
from sigwrap.policy.language.parse import FindBase, parse_policy
from sigwrap.text import did_you_mean

_TMP = "/tmp"
_EMPTY_WORD = "''"
_BY_URL = "sigwrap -p URL --policy-key FILE -- COMMAND; elsewhere, name a downloaded file"
_MOST_FILES_LOOKED_AT = 200
_MOST_GIT_BYTES = 64 << 10
_KEYS_OF_A_POLICY = frozenset({b"extends", b"defaults", b"command_rules", b"signal_rules"})


def load_policy(selector: str, *, variables: Mapping[str, str]) -> Policy:
    """Load a shipped policy by its name, or a file."""
    return parse_policy(read_source(selector), variables=variables, find_base=find_base)


def load_with_sources(
    selector: str, *, variables: Mapping[str, str]
) -> tuple[Policy, tuple[Source, ...]]:
    """Return a policy for a run, and its texts: the file first, then the policies it extends.

    The tests of a shipped policy are left out.
    """
    return with_sources(read_source(selector), variables=variables, find_base=find_base)


def with_sources(
    source: Source, *, variables: Mapping[str, str], find_base: FindBase
) -> tuple[Policy, tuple[Source, ...]]:
    sources = [source._replace(for_a_run=True)]

    def find(base: str, source: Source) -> Source | None:
        found = find_base(base, source)
        if found is None:
            return None
        sources.append(found._replace(for_a_run=True))
        return sources[-1]

    policy = parse_policy(sources[0], variables=variables, find_base=find)
    return policy, tuple(sources)


def load_profile(file: str, *, variables: Mapping[str, str]) -> Policy:
    """Load a policy of `sigwrap policy learn --new`; a shipped policy is no profile."""
    source = _file(file)
    if source is None:
        raise PolicyError(
            f"--profile {file}: no such file",
            "to make one from sessions: sigwrap policy learn --new SESSION...",
        )
    return parse_policy(source, variables=variables, find_base=find_base)


def read_source(selector: str) -> Source:
    if selector in SHIPPED:
        return _shipped(selector)
    if is_url(selector):  # it may have a password
        raise UsageError("only a run can have a policy by URL", _BY_URL)
    source = _file(selector)
    if source is None:
        meant = did_you_mean(selector, SHIPPED)
        raise PolicyError(
            f"no policy or file called {selector or _EMPTY_WORD}",
            f"{meant}shipped policies: {', '.join(SHIPPED)}",
        )
    return source


def files_here() -> list[str]:
    """Return the names of YAML files in the current directory that look like policies."""
    try:
        names = sorted(each for each in os.listdir() if each.endswith((".yaml", ".yml")))
    except OSError:
        return []  # the directory was removed, or cannot be read
    return [name for name in names[:_MOST_FILES_LOOKED_AT] if _looks_like_a_policy(name)]


def _looks_like_a_policy(path: str) -> bool:
    try:
        lines = _read(path).split(b"\n")
    except OSError:
        return False
    keys = {line.partition(b":")[0] for line in lines}
    return {b"version", b"name"} <= keys and not keys.isdisjoint(_KEYS_OF_A_POLICY)


def find_base(selector: str, source: Source) -> Source | None:
    if selector in SHIPPED:
        return _shipped(selector)
    return _file(os.path.normpath(os.path.join(os.path.dirname(source.name), selector)))


def host_variables(project_root: str) -> dict[str, str]:
    """Return the built-in variables of this machine and user."""
    if not os.path.isdir(project_root):
        raise UsageError(f"--root {project_root}: no such directory")
    root, home = _absolute(project_root), _home()
    values = {
        "PROJECT_ROOT": root,
        "GIT_COMMON_DIR": git_common_dir(root),
        "HOME": home,
        "USER": os.environ.get("USER", ""),
        "TMPDIR": _temporary(home, root),
        "USERS_PROC": "" if os.geteuid() == 0 else "/proc",
    }
    # A policy is text. A byte that is no UTF-8 becomes `?`, which matches any character in a glob.
    return {
        name: "".join("?" if _is_undecodable(each) else each for each in value)
        for name, value in values.items()
    }


def _home() -> str:
    """Return the home directory from the environment, or (as for cron jobs) from the system."""
    named = os.environ.get("HOME", "")
    if os.path.isabs(named):
        return named
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""


def _temporary(home: str, root: str) -> str:
    """Return TMPDIR, or /tmp if TMPDIR holds the home directory or the project."""
    named = os.environ.get("TMPDIR", "")
    if not os.path.isabs(named):
        return _TMP
    real = os.path.join(os.path.realpath(named), "")
    holds = any(os.path.join(os.path.realpath(each), "").startswith(real) for each in (home, root))
    return _TMP if holds else named


def _absolute(folder: str) -> str:
    """Return the absolute path, even if the current directory was removed."""
    if os.path.isabs(folder):
        return os.path.normpath(folder)
    try:
        here = os.readlink("/proc/self/cwd")
    except OSError as failure:
        why = f"can't find the path of the current directory: {failure.strerror}"
        raise UsageError(why, "--root sets another project directory") from failure
    return os.path.normpath(os.path.join(here, folder))


def _is_undecodable(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


def packaged(directory: str, file: str) -> str:
    """Return a file of the package, by its loader (for zipapps), or beside it in a checkout."""
    loader: Any = sigwrap.__loader__
    package = os.path.dirname(sigwrap.__file__)
    try:
        data: bytes = loader.get_data(os.path.join(package, directory, file))
    except OSError:
        data = loader.get_data(os.path.join(os.path.dirname(package), directory, file))
    return data.decode()


def _shipped(name: str) -> Source:
    file = f"{name}.yaml"
    return Source(name=file, text=packaged("policies", file), shipped=True)


def _file(path: str) -> Source | None:
    try:
        data = _read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PolicyError(f"{path}: can't be read: {error.strerror}") from error
    try:
        return Source(name=path, text=data.decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PolicyError(f"{path}:{line}: not UTF-8") from error


def _read(path: str) -> bytes:
    """Read a plain file: a FIFO or a device could delay the start, or never end."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file")
        with open(fd, "rb", closefd=False) as file:
            return file.read(4 * MAX_TEXT_CHARACTERS + 1)
    finally:
        os.close(fd)


def git_common_dir(project_root: str) -> str:
    """Return the directory with the project's git history, or an empty string.

    For a worktree or a submodule, a file in the project names it, and earlier commands may have
    written that file. So it counts only if the git directory names the project in turn.
    """
    folder = os.path.realpath(project_root)
    while True:
        found = os.path.join(folder, ".git")
        if os.path.islink(found):
            return ""
        if os.path.isdir(found):
            return found if _is_repository(found) else ""
        if os.path.isfile(found):
            return _git_dir_named_by(found)
        if folder == "/":
            return ""
        folder = os.path.dirname(folder)


def _git_dir_named_by(file: str) -> str:
    key, _, path = _first_line(file).partition(": ")
    if key != "gitdir" or not path:
        return ""
    folder = os.path.dirname(file)
    git_dir = os.path.realpath(os.path.join(folder, path))
    back = _first_line(os.path.join(git_dir, "gitdir"))
    if back:  # it is a worktree
        common = os.path.realpath(os.path.join(git_dir, _first_line(f"{git_dir}/commondir")))
        leads_back = os.path.realpath(os.path.join(git_dir, back)) == file
        is_inside = os.path.dirname(git_dir) == os.path.join(common, "worktrees")
        return common if leads_back and is_inside and _is_repository(common) else ""
    for line in _read_git_file(os.path.join(git_dir, "config")).splitlines():  # for a submodule
        key, _, value = map(str.strip, line.partition("="))
        if key == "worktree" and os.path.realpath(os.path.join(git_dir, value)) == folder:
            return git_dir if _is_repository(git_dir) else ""
    return ""


def _is_repository(folder: str) -> bool:
    return os.path.isfile(f"{folder}/HEAD") and os.path.isdir(f"{folder}/objects")


def _first_line(path: str) -> str:
    return _read_git_file(path).partition("\n")[0]


def _read_git_file(path: str) -> str:
    """Return the text of a plain file; anything else could delay the start."""
    try:
        with open_plain_file(path) as file:
            return os.fsdecode(file.read(_MOST_GIT_BYTES).partition(b"\0")[0])  # no path has a NUL
    except OSError:
        return ""
