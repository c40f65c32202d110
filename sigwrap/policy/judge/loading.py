"""Variables that make a program load code or run another program.

A rule that allows a program by its name means that program's own code. With one of these set, it
would run other code under that name: the dynamic loader and the C library read some in every
program, the programs below read the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sigwrap.bare import lru_cache

# Names of programs without their version, and the variables; a star is for all that begin so.
_VARIABLES = """
    *: LD_* GCONV_PATH GLIBC_TUNABLES LOCPATH OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES
    node nodejs: NODE_OPTIONS NODE_PATH NODE_REPL_EXTERNAL_MODULE
    npm npx: NODE_OPTIONS NODE_PATH npm_config_* NPM_CONFIG_*
    deno: DENO_DIR
    python: PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONUSERBASE PYTHONWARNINGS PYTHONBREAKPOINT
    python: PYTHONINSPECT PYTHONPLATLIBDIR PYTHONEXECUTABLE PYTHONPYCACHEPREFIX
    perl: PERL5OPT PERL5LIB PERLLIB PERL5DB
    ruby: RUBYOPT RUBYLIB RUBYSHELL GEM_HOME GEM_PATH BUNDLE_GEMFILE
    php: PHPRC PHP_INI_SCAN_DIR
    lua: LUA_INIT LUA_PATH LUA_CPATH LUA_INIT_* LUA_PATH_* LUA_CPATH_*
    java: JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH
    mvn: MAVEN_OPTS MAVEN_ARGS JAVA_TOOL_OPTIONS _JAVA_OPTIONS
    gradle: GRADLE_OPTS JAVA_OPTS JAVA_TOOL_OPTIONS _JAVA_OPTIONS
    dotnet: DOTNET_STARTUP_HOOKS DOTNET_ADDITIONAL_DEPS CORECLR_* COR_*
    bash: BASH_ENV ENV PROMPT_COMMAND PS4 SHELLOPTS BASHOPTS BASH_FUNC_*
    sh: BASH_ENV ENV PS4 SHELLOPTS BASH_FUNC_*
    dash ash busybox ksh mksh: ENV PS4
    zsh: ZDOTDIR FPATH PS4
    git: GIT_SSH GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_PAGER GIT_EDITOR GIT_SEQUENCE_EDITOR
    git: GIT_ASKPASS SSH_ASKPASS GIT_PROXY_COMMAND GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_ALLOW_PROTOCOL
    git: GIT_DIR GIT_COMMON_DIR PAGER EDITOR VISUAL GIT_CONFIG*
    gh: GH_PAGER GH_EDITOR GH_BROWSER GH_PATH GH_CONFIG_DIR PAGER EDITOR VISUAL
    man: PAGER MANPAGER MANOPT
    less: LESSOPEN LESSCLOSE LESSEDIT EDITOR VISUAL
    more crontab: EDITOR VISUAL
    systemctl: PAGER SYSTEMD_PAGER SYSTEMD_EDITOR EDITOR VISUAL
    journalctl: PAGER SYSTEMD_PAGER
    psql: PAGER PSQL_PAGER PSQL_EDITOR EDITOR VISUAL PSQLRC
    sudo: SUDO_ASKPASS SUDO_EDITOR EDITOR VISUAL
    ssh: SSH_ASKPASS SSH_SK_PROVIDER SSH_PKCS11_HELPER
    scp: SSH_ASKPASS
    rsync: RSYNC_RSH RSYNC_CONNECT_PROG
    tar: TAR_OPTIONS TAPE RSH
    make gmake: MAKEFLAGS GNUMAKEFLAGS MAKEFILES MFLAGS
    gcc g++ cc: COMPILER_PATH GCC_EXEC_PREFIX
    cargo: RUSTC RUSTDOC RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER RUSTFLAGS CARGO_BUILD_RUSTC*
    cargo: CARGO_TARGET_* CARGO_ALIAS_* CARGO_REGISTRIES_*
    go: GOFLAGS GOTOOLDIR GOROOT GOENV CC CXX
    pip: PYTHONPATH PYTHONHOME PIP_*
    uv: PYTHONPATH UV_*
    gdb: GDBHISTFILE PYTHONPATH PYTHONHOME
    vim vi: VIMINIT EXINIT VIM VIMRUNTIME
    gst: GST_PLUGIN_PATH GST_PLUGIN_SYSTEM_PATH GST_PLUGIN_SCANNER
"""


def loading_variables(
    names: Iterable[str],
    environment: Iterable[tuple[str, bytes]],
    own: Mapping[str, bytes],
) -> tuple[str, ...]:
    """Return the variables that make a program with one of these names load code.

    Empty variables load nothing. A variable that the command got with the same value is the user's.
    """
    table = _table()
    words = [word for name in ("*", *map(_without_version, names)) for word in table.get(name, ())]
    prefixes = tuple(word[:-1] for word in words if word.endswith("*"))
    return tuple(
        name
        for name, value in environment
        if value and (name in words or name.startswith(prefixes)) and own.get(name) != value
    )


@lru_cache(maxsize=None)
def _table() -> Mapping[str, Sequence[str]]:
    table: dict[str, list[str]] = {}
    for line in _VARIABLES.split("\n"):
        programs, _, words = line.partition(": ")
        for program in programs.split():
            table.setdefault(program, []).extend(words.split())
    return table


def _without_version(name: str) -> str:
    """Return a program's name: `python3.11` is python, `git-status` git, `npm-cli.js` npm."""
    end = next((at for at, c in enumerate(name) if c in "0123456789.-_"), len(name))
    return name[:end]
