"""The text around the key tables of docs/policy-reference.md."""

from __future__ import annotations

INTRODUCTION = """\
# Policy reference

<!-- Generated from sigwrap/policy/language/schema.py; do not edit. -->

This page lists every key of a policy. Start with the [guide](policy.md) or the \
[cookbook](cookbook.md).

- `$` marks text that takes [variables](#variables). In globs and patterns sigwrap inserts a \
variable's value literally.
- In a glob, `*` and `?` stop at a slash, and `**` does not; `**/x` is `x` in any directory.
- A duration is a number of seconds, or `45s`, `10m`, `1h30m`, `2d`. A size is a number of bytes, \
or `64K`, `512M`, `2G`.
- The first rule whose conditions all hold decides. Every rule has a `name` (required, unique: \
letters, digits, `.`, `_`, `-`), a `description`, and `overrides`, the base's rules that it may \
weaken. `layer` comes from `policy show`: the number of bases below."""

TARGETS = {
    "self": "The sender",
    "parent": "sigwrap itself; always denied",
    "root": "The command",
    "children": "The sender's direct children",
    "ancestors": "The processes above the sender, up to the command",
    "descendants": "All processes below the sender",
    "siblings": "Processes with the same parent",
    "peers": "Forks of the same program, which may execute its file again",
    "agent": "The command and its peers, for a sender that is none of them",
    "session": "Every process in the session, the sender too",
    "system": "Pid 1 and kernel threads",
    "user": "Other processes of the same user, outside the session",
    "external": "Every process outside the session",
}

DESTINATIONS = {
    "example.com": "A host; sigwrap resolves it, and keeps the result for ten minutes. "
    "`*.example.com` is not possible",
    "192.0.2.0/24": "A network, or one address; IPv4 in IPv6 counts as IPv4",
    "loopback": "127.0.0.0/8, ::1; also connections to 0.0.0.0 and ::",
    "private": "10/8, 172.16/12, 192.168/16, 100.64/10, link-local, fc00::/7",
    "*": "Every address",
    "unix:/run/x.sock": "A socket's path with links resolved, or `@name`; globs. `unix:*` is "
    "every socket",
    "unix:docker": "A service's usual sockets, unless the session started it: `docker`, "
    "`podman`, `containerd`, `libvirt`, `lxd`, `dbus`, `systemd`, `tmux`, `screen`, `zellij`, "
    "`x11`, `wayland`, `ssh-agent`, `gpg-agent`",
}

VARIABLES = {
    "PROJECT_ROOT": "The directory in which sigwrap started, or `--root`",
    "GIT_COMMON_DIR": "The repository's git directory; unset outside a repository",
    "HOME": "The home directory",
    "USER": "The user's name",
    "TMPDIR": "The directory for temporary files",
    "USERS_PROC": "`/proc`; unset for root",
}

VARIABLES_NOTE = """\
`vars` adds variables. `${X:-default}` has a default for an unset or empty variable."""

OLD_KEYS = """\
sigwrap still reads these. `sigwrap policy check` names the new key; `--write` replaces the old \
one in the file."""

BUILT_IN_RULES = {
    "default": "No rule matched",
    "probe": "Signal 0 only tests for a process",
    "sigwrap": "No signals to sigwrap's processes, no tracing them",
    "everybody": "No `kill(-1)`",
    "unresolved": "The signal's receiver is unknown",
    "owner": "The owner of the descriptor was judged before",
    "stub": "A stub may signal its own command",
    "parent": "A child may renice its parent shell and lower its limits",
    "job": "A foreground job may stop itself, as Ctrl+Z does",
    "ptrace": "No tracing outside the session, none that survives an exec",
    "group": "No joining a process group outside the session",
    "terminal": "No taking a terminal from outside the session",
    "unreadable": "sigwrap cannot read the program or its arguments",
    "stalled": "A file or memory did not answer within a second",
    "traced": "A traced caller cannot get an approval",
    "network": "No rule can judge the call: io_uring, raw sockets",
    "unseen": "File changes that sigwrap cannot see",
    "parted": "No new names next to a denied path",
    "cgroups": "No writing to cgroup files",
    "killswitch": "The [kill switch](killswitch.md) is on",
}

NOTES = {
    "policy": """\
`limits.memory` replaces only `limits.memory` of the base; a list replaces the whole list. `vars` \
override the base's.""",
    "command_rules": """\
**Names.** A rule that denies, approves or redirects matches the called name and the real file's \
name. It also matches hard links and exact copies of that file. A rule that allows or audits \
matches the real file only: a link `ls` to bash is bash. Only links that root alone can change, \
such as `sh` for dash, count by their own names. For programs on the caller's own mounts or root, \
only `"*"` allows.

**Arguments.** sigwrap judges the first 64 KiB and 4,096 arguments; a longer list is `truncated`. \
For some 40 tools, such as git and npm, it skips the values of options (`git -C dir push`) and \
knows short forms (`npm i`). `git-push` counts as `git push`, `python3 -m pip` as `pip`. \
An unknown option may take a value: a rule that allows must match in both readings. `flags` ends \
at `--`, and is only for rules that deny, approve or redirect. Of longer lists, `args` allows \
nothing.

**Paths.** sigwrap resolves `.`, `..`, `//`, `~`, `/proc/self/root` and a final `*`, but no \
symbolic links. Relative arguments start at the caller's directory, relative paths of a rule at \
`${PROJECT_ROOT}`.

**Digests.** A script has its own digest, not its interpreter's. An unreadable file, one \
over 1 GiB or on a network or FUSE file system has none. Then `not_sha256` matches in rules that \
deny, approve or redirect.

**Variables.** `loads_code` covers the dynamic loader's variables for every program, and \
others (`PYTHONPATH`, `GIT_SSH_COMMAND`) for programs that read them. Values that the command \
started with do not count. An unreadable environment counts as loading code.""",
    "redirect_to": """\
The replacement runs in the caller's process. With `record: true`, it runs as a child of \
`sigwrap-stub`, which passes on signals and the exit status. Then:

- Its standard streams are pipes, even on a terminal; other descriptors are not recorded.
- The log has every byte unmasked. If the store is full, the stub kills the replacement and exits \
with 126.
- The stub reads up to 256 KiB ahead; unread input of a pipe is lost.

Processes that may trace the replacement can read a secret in `env`.""",
    "signal_rules": """\
Tracing a process, reading its memory and setting its limits count as SIGKILL, changing its \
scheduling as SIGSTOP. A rule that denies `session`, or every process, includes the sender: allow \
`self` before it.""",
    "target": """\
`@lethal` ends or stops a process that does not handle it; handlers of `@crash` mostly end too. A \
process can match several words, and chooses its own command name. A blocked signal is not \
`handled`.""",
    "file_rules": """\
| Operation | Meaning |
|---|---|
| `read` | Read a file's content; names in a directory are always readable |
| `write` | Change or truncate a file |
| `create` | Add a name to a directory: a file, a link, a socket, a move into it |
| `delete` | Remove a name: delete, or move away |
| `execute` | Run a file, which also needs `read` and its loader or interpreter |

- The kernel (Landlock, Linux 6.2) enforces these rules, and reports no denials.
- Landlock only allows. To deny `~/.ssh`, sigwrap allows all other names of `~` at the start. \
Later files directly in `~` are unreadable, and processes cannot create or delete names there.
- A rule against reading covers files that exist at the start, and files that links in a denied \
directory name, three levels deep.
- An existing hard link or bind mount elsewhere still reaches the file.
- Modes, times, extended attributes, sockets and open files are not covered.
- `audit` logs `write`, `create` and `delete`; each call takes 0.1 ms more. It can miss a path \
that another thread changes, io_uring, memory mappings and inherited descriptors.""",
    "network_rules": """\
A denied TCP connection fails with ECONNREFUSED, everything else with EACCES. sigwrap judges a \
copy of the address, and connects for the caller. A Unix peer sees sigwrap's pid.

- A server is judged when it begins to listen; `bind` rules cannot cover UDP.
- io_uring, raw and packet sockets, vsock and SCTP fail with EPERM.
- A host with ever-changing addresses may be denied now and then. Hosts that share an address \
count as one.
- Open connections stay open.""",
    "env_policy": """\
Globs match whole names: `*_KEY` matches `OPENAI_API_KEY`, `API_KEY` does not. `SIGWRAP_KEY` is \
always removed. `redirect_to.env` can still give a removed variable to one tool.""",
    "limits": """\
A run that exceeds a total (`max_execs` and below) ends: sigwrap logs `limit_exceeded`, sends \
SIGTERM to the command, and kills the tree after `--grace`. It exits with 124. At half of \
`cpu_time`, `memory` and `log_size` it logs a warning. \
[Limitations](limitations.md#resource-limits) says what it misses.""",
    "session": """\
By default, `false` where a file rule denies anything, or where an ordinary user may write to \
cgroups of other processes. `true` together with such a file rule is an error.""",
    "on": """\
`log` writes an event, `stop` sends SIGSTOP to the tree, `kill` kills it; see \
[signals](signals.md). `sigwrap policy learn --new` writes a profile. \
`boundary` covers signals and traces aimed at sigwrap, changed logs, a forged kill switch, and \
processes in the session that answer approval requests.""",
    "trust": """\
A rule that names the program by its digest or full path, without a glob, exempts it from \
`path_shadow`. For a link, the rule must also name the link.""",
}
