"""Variables by which a program runs something else, and the values by which it does not."""

from __future__ import annotations

from sigwrap.bare import re
from sigwrap.hooks.shells import is_descriptor
from sigwrap.hooks.words import Word
from sigwrap.policy.judge.match import UNTOLD

# A shell reads most of these values: a path in one has no character that is special to it.
FOLDERS = r"([\w./~+-]*/)?"
_VIEWERS = r"|:|true|cat|less( -[FRXSKMNQEIJeimnqr]+)*|more|vim?|nano|emacs|code (--wait|-w)"
_ACTIONS = r"(edit|reword|squash|fixup|drop|[ersfd])"
_SED = (
    r"sed(( -[iEenrs]+)+ ['\"]?(\d+(,(\d+|\$))? ?)?"
    rf"s/\^?pick( [0-9a-f]+)?/{_ACTIONS}( [0-9a-f]+)?/g?['\"]?)+"
)
_SSH = (
    rf"{FOLDERS}ssh( +(?!-[A-Za-z0-9]*F|(-[A-Za-z0-9]*o)?[\s=\"']*"
    r"(?i:proxy|local|known|match|include|remotec|hostname))[^\s;&|`$()<>\0\\\"']+)*"
)
_RUNS_OR_WRITES = r"(?!(.*\s)?-o)(?!.*-wrapper)"  # an option of a compiler
_COMPILER = (
    rf"{_RUNS_OR_WRITES}({FOLDERS}(ccache )?(gcc|g\+\+|cc|c\+\+|clang|clang\+\+|ld|ar|as|cpp)"
    r"(-[\d.]+)?( [^;&|`#$<>\0\n]*)?)?"
)
_HARMLESS = (
    (r"GIT_SEQUENCE_EDITOR", f"({_VIEWERS}|{_SED})"),
    (
        r"(GIT_|SUDO_|PSQL_|GH_|SYSTEMD_|MAN)?(EDITOR|PAGER)|VISUAL|GIT_EXTERNAL_DIFF"
        r"|(GIT|SSH|SUDO|WGET)_ASKPASS",
        f"({_VIEWERS})",
    ),
    (r"GIT_SSH(_COMMAND)?|RSYNC_RSH", f"({_SSH})?"),
    (r"CC|CXX|CPP|AS|AR|LD|(COMPILE|LINK|PREPROCESS)\..*", _COMPILER),
    (
        r"(C|CXX|CPP|AS|LD|AR)FLAGS|LDLIBS|TARGET_ARCH|OUTPUT_OPTION",
        rf"{_RUNS_OR_WRITES}[^;&|`#<>\n]*",
    ),
    (r"(GNU)?MAKEFLAGS", r"(\s|-?[ksj]|[\d\0]|--jobs=?|--no-print-directory)*"),
    (r"BASH_ENV|ENV|MAKEFILES", r"[^$`\0]*"),
    (r"PS[0124]", r"[^\\'\"`\0]*"),
    (r"SHELL", rf"{FOLDERS}(ba|da|a)?sh|"),
    (r"GIT_CONFIG_NOSYSTEM", r".*"),
    (r"RANDOM|SECONDS|LINENO|HISTCMD|OPTIND", r"\d*"),  # bash evaluates what it assigns
    (r"HISTFILE|functions|commands|aliases|cdpath", r""),  # some of them to zsh
    (
        r"LESS(OPEN|CLOSE)|PROMPT_COMMAND|GIT_PROXY_COMMAND|RSYNC_CONNECT_PROG|TAR_OPTIONS"
        r"|(GIT_CONFIG|GIT_EXEC_PATH|GIT_ALLOW_PROTOCOL|GIT_TEMPLATE_DIR|BASH_FUNC_|BASHOPTS"
        r"|SHELLOPTS|POSIXLY_CORRECT|BASH_ALIASES|BASH_CMDS|GLOBIGNORE|CDPATH).*",
        r"|/dev/null",
    ),
)


def harmless(name: str) -> str:
    """Return a pattern of the values of a variable that run nothing else."""
    return next((values for names, values in _HARMLESS if re.fullmatch(names, name)), "(?s:.*)")


def may_run(name: str, value: Word) -> bool:
    is_no_file = name in ("BASH_ENV", "ENV", "MAKEFILES") and (
        value.text == "-" or is_descriptor(value.text)
    )
    return is_no_file or re.fullmatch(harmless(name), value.text) is None or UNTOLD in name
