"""The rows of hooks/starters.py for programs that run another one only by an option of theirs."""

from __future__ import annotations

from collections.abc import Mapping

from sigwrap.hooks.starter import EVERYWHERE, Starter, Then

_BY_OPTION = Starter(Then.NOTHING, options_behind=EVERYWHERE)
_OF_SSH = "proxycommand localcommand knownhostscommand match include"

STARTERS_OF_OPTIONS: Mapping[str, Starter] = {
    "split": _BY_OPTION._replace(
        short="a:b:C:del:n:t:uvx",
        long="additional-suffix= bytes= elide-empty-files filter= lines= line-bytes= number= "
        "separator= suffix-length=",
        lines="--filter",
    ),
    "tar": _BY_OPTION._replace(
        short="Ab:BcC:df:F:g:GhH:iI:jJkK:lL:mMnN:oOpPrRsStT:uUvV:wWxX:zZa",
        long="checkpoint? checkpoint-action= compress directory= file= files-from= info-script= "
        "new-volume-script= rmt-command= rsh-command= to-command= to-stdout use-compress-program=",
        lines="-I --use-compress-program -F --info-script --new-volume-script --to-command",
        fed=True,
        unread="--checkpoint-action --rmt-command --rsh-command",
    ),
    "sort": _BY_OPTION._replace(
        short="bcCdfghik:mMno:rRsS:t:T:uVz",
        long="compress-program= check?",
        lines="--compress-program",
        fed=True,
    ),
    "rsync": _BY_OPTION._replace(
        short="vqcarRbudlLkHEApoDtUNOJXSWnxyCzhiFPgsm046e:f:B:T:M:@:",
        long="rsh=",
        lines="-e --rsh",
        fed=True,
    ),
    "install": _BY_OPTION._replace(
        long="strip strip-program= suffix=", lines="--strip-program", fed=True
    ),
    "wget": _BY_OPTION._replace(
        short="e:",
        long="use-askpass= use-server-timestamps execute=",
        lines="--use-askpass",
        fed=True,
        unread_values="use_askpass",
    ),
    "dpkg": _BY_OPTION._replace(
        long="pre-invoke= post-invoke= status-logger= post-deinstall predep-package",
        lines="--pre-invoke --post-invoke --status-logger",
    ),
    **dict.fromkeys(
        ("apt", "apt-get", "apt-cache", "aptitude"),
        _BY_OPTION._replace(
            short="qdsuyVfmUbhvo:c:t:a:",
            long="option= config-file= target-release= default-release=",
            unread="-c --config-file",
            unread_values="apt::update:: dpkg::pre- dpkg::post- dpkg::tools dir::",
        ),
    ),
    "scp": _BY_OPTION._replace(
        short="346ABCpqrRsTvc:D:F:i:J:l:o:P:S:X:",
        lines="-S -D",
        fed=True,
        unread="-F",
        unread_values=_OF_SSH,
    ),
    "sftp": _BY_OPTION._replace(
        short="46aACfNpqrvB:b:c:D:F:i:J:l:o:P:R:S:s:X:",
        lines="-S -D",
        fed=True,
        unread="-F -b",
        unread_values=_OF_SSH,
    ),
    # `-wrapper`, the only word of theirs that begins so and goes on
    **dict.fromkeys(
        ("gcc", "g++", "cc", "c++", "gfortran"),
        _BY_OPTION._replace(short="w::", unread_values="rapper"),
    ),
}
