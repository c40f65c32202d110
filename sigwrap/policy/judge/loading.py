"""Variables that make a program load code or run another program.

A rule that allows a program by its name means that program's own code. With one of these set, it
would run other code under that name: the dynamic loader's are read by nearly every program, the
others by the programs that they are listed for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Variables of the dynamic loader and the C library, for every program.
_EVERY_PREFIX = ("LD_",)
_EVERY = _words("GCONV_PATH GLIBC_TUNABLES LOCPATH OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES")

# By the program's name without its version: variables, and beginnings of variables.
_BY_PROGRAM: dict[str, tuple[frozenset[str], tuple[str, ...]]] = {
    "node": (_words("NODE_OPTIONS NODE_PATH NODE_REPL_EXTERNAL_MODULE"), ()),
    "nodejs": (_words("NODE_OPTIONS NODE_PATH NODE_REPL_EXTERNAL_MODULE"), ()),
    "npm": (_words("NODE_OPTIONS NODE_PATH"), ("npm_config_", "NPM_CONFIG_")),
    "npx": (_words("NODE_OPTIONS NODE_PATH"), ("npm_config_", "NPM_CONFIG_")),
    "deno": (_words("DENO_DIR"), ()),
    "python": (
        _words(
            "PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONUSERBASE PYTHONWARNINGS PYTHONBREAKPOINT "
            "PYTHONINSPECT PYTHONPLATLIBDIR PYTHONEXECUTABLE PYTHONPYCACHEPREFIX"
        ),
        (),
    ),
    "perl": (_words("PERL5OPT PERL5LIB PERLLIB PERL5DB"), ()),
    "ruby": (_words("RUBYOPT RUBYLIB RUBYSHELL GEM_HOME GEM_PATH BUNDLE_GEMFILE"), ()),
    "php": (_words("PHPRC PHP_INI_SCAN_DIR"), ()),
    "lua": (_words("LUA_INIT LUA_PATH LUA_CPATH"), ("LUA_INIT_", "LUA_PATH_", "LUA_CPATH_")),
    "java": (_words("JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH"), ()),
    "mvn": (_words("MAVEN_OPTS MAVEN_ARGS JAVA_TOOL_OPTIONS _JAVA_OPTIONS"), ()),
    "gradle": (_words("GRADLE_OPTS JAVA_OPTS JAVA_TOOL_OPTIONS _JAVA_OPTIONS"), ()),
    "dotnet": (_words("DOTNET_STARTUP_HOOKS DOTNET_ADDITIONAL_DEPS"), ("CORECLR_", "COR_")),
    "bash": (_words("BASH_ENV ENV PROMPT_COMMAND PS4 SHELLOPTS BASHOPTS"), ("BASH_FUNC_",)),
    "sh": (_words("BASH_ENV ENV PS4 SHELLOPTS"), ("BASH_FUNC_",)),
    "dash": (_words("ENV PS4"), ()),
    "ash": (_words("ENV PS4"), ()),
    "busybox": (_words("ENV PS4"), ()),
    "ksh": (_words("ENV PS4"), ()),
    "mksh": (_words("ENV PS4"), ()),
    "zsh": (_words("ZDOTDIR FPATH PS4"), ()),
    "git": (
        _words(
            "GIT_SSH GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_PAGER GIT_EDITOR GIT_SEQUENCE_EDITOR "
            "GIT_ASKPASS SSH_ASKPASS GIT_PROXY_COMMAND GIT_EXEC_PATH GIT_TEMPLATE_DIR "
            "GIT_ALLOW_PROTOCOL GIT_DIR GIT_COMMON_DIR PAGER EDITOR VISUAL"
        ),
        ("GIT_CONFIG",),
    ),
    "gh": (_words("GH_PAGER GH_EDITOR GH_BROWSER GH_PATH GH_CONFIG_DIR PAGER EDITOR VISUAL"), ()),
    "man": (_words("PAGER MANPAGER MANOPT"), ()),
    "less": (_words("LESSOPEN LESSCLOSE LESSEDIT EDITOR VISUAL"), ()),
    "more": (_words("EDITOR VISUAL"), ()),
    "crontab": (_words("EDITOR VISUAL"), ()),
    "systemctl": (_words("PAGER SYSTEMD_PAGER SYSTEMD_EDITOR EDITOR VISUAL"), ()),
    "journalctl": (_words("PAGER SYSTEMD_PAGER"), ()),
    "psql": (_words("PAGER PSQL_PAGER PSQL_EDITOR EDITOR VISUAL PSQLRC"), ()),
    "sudo": (_words("SUDO_ASKPASS SUDO_EDITOR EDITOR VISUAL"), ()),
    "ssh": (_words("SSH_ASKPASS SSH_SK_PROVIDER SSH_PKCS11_HELPER"), ()),
    "scp": (_words("SSH_ASKPASS"), ()),
    "rsync": (_words("RSYNC_RSH RSYNC_CONNECT_PROG"), ()),
    "tar": (_words("TAR_OPTIONS TAPE RSH"), ()),
    "make": (_words("MAKEFLAGS GNUMAKEFLAGS MAKEFILES MFLAGS"), ()),
    "gmake": (_words("MAKEFLAGS GNUMAKEFLAGS MAKEFILES MFLAGS"), ()),
    "gcc": (_words("COMPILER_PATH GCC_EXEC_PREFIX"), ()),
    "g++": (_words("COMPILER_PATH GCC_EXEC_PREFIX"), ()),
    "cc": (_words("COMPILER_PATH GCC_EXEC_PREFIX"), ()),
    "cargo": (
        _words("RUSTC RUSTDOC RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER RUSTFLAGS"),
        ("CARGO_BUILD_RUSTC", "CARGO_TARGET_", "CARGO_ALIAS_", "CARGO_REGISTRIES_"),
    ),
    "go": (_words("GOFLAGS GOTOOLDIR GOROOT GOENV CC CXX"), ()),
    "pip": (_words("PYTHONPATH PYTHONHOME"), ("PIP_",)),
    "uv": ((_words("PYTHONPATH")), ("UV_",)),
    "gdb": (_words("GDBHISTFILE PYTHONPATH PYTHONHOME"), ()),
    "vim": (_words("VIMINIT EXINIT VIM VIMRUNTIME"), ()),
    "vi": (_words("VIMINIT EXINIT VIM VIMRUNTIME"), ()),
    "gst": (_words("GST_PLUGIN_PATH GST_PLUGIN_SYSTEM_PATH GST_PLUGIN_SCANNER"), ()),
}


def loading_variables(
    names: Iterable[str],
    environment: Iterable[tuple[str, bytes]],
    own: Mapping[str, bytes],
) -> tuple[str, ...]:
    """Return the variables that make a program with one of these names load code.

    Empty variables load nothing. A variable that the command got with the same value is the user's.
    """
    wanted, prefixes = _of_programs(names)
    return tuple(
        name
        for name, value in environment
        if value and (name in wanted or name.startswith(prefixes)) and own.get(name) != value
    )


def _of_programs(names: Iterable[str]) -> tuple[set[str], tuple[str, ...]]:
    wanted = set(_EVERY)
    prefixes = list(_EVERY_PREFIX)
    for name in names:
        known = _BY_PROGRAM.get(_without_version(name))
        if known is not None:
            wanted |= known[0]
            prefixes += known[1]
    return wanted, tuple(prefixes)


def _without_version(name: str) -> str:
    """`python3.11` is a python, `git-status` a git, `npm-cli.js` an npm."""
    end = next((at for at, c in enumerate(name) if c in "0123456789.-_"), len(name))
    return name[:end]
