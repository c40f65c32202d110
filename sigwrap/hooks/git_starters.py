"""The rows of hooks/starters.py for git and its subcommands."""

from __future__ import annotations

from collections.abc import Mapping

from sigwrap.hooks.starter import EVERYWHERE, Starter, Then

_LOCAL_END = Starter(
    Then.NOTHING,
    options_behind=EVERYWHERE,
    long="upload-pack= receive-pack= exec= sendmail-cmd=",
    lines="--upload-pack --receive-pack --exec --sendmail-cmd",
    fed=True,
    moves="*",  # to the repository at the other end
)

STARTERS_OF_GIT: Mapping[str, Starter] = {
    "git": Starter(
        Then.SUBCOMMAND,
        "C:c:pPhv",
        "git-dir= work-tree= namespace= super-prefix= attr-source= config-env= shallow-file= "
        "exec-path? list-cmds= version help html-path man-path info-path paginate no-pager "
        "no-replace-objects no-lazy-fetch no-optional-locks no-advice bare literal-pathspecs "
        "glob-pathspecs noglob-pathspecs icase-pathspecs",
        settings="-c",
        moves="-C --work-tree --git-dir",
        unread="--config-env",
    ),
    "git rebase": Starter(
        Then.NOTHING,
        "qvnC:fmiS::rs:X:x:kpt",
        "exec= onto= whitespace= empty= strategy= strategy-option= autosquash autostash apply "
        "abort edit-todo",
        options_behind=EVERYWHERE,
        lines="-x --exec",
        moves="*",
    ),
    "git config": Starter(
        Then.NOTHING,
        "f:lez",
        "file= blob= type= default= comment= fixed-value global system local add replace-all "
        "rename-section remove-section unset unset-all get get-all list edit",
        options_behind=EVERYWHERE,
        sets_git=True,
        unread="--rename-section",
    ),
    "git merge-index": Starter(short="oq", moves="*"),
    "git remote-ext": Starter(Then.NOTHING, unread="*"),
    "git for-each-repo": Starter(Then.SAME, "h", "config= keep-going", moves="*"),
    "git bisect": Starter(Then.SUBCOMMAND),
    "git bisect run": Starter(moves="*"),
    "git submodule": Starter(Then.SUBCOMMAND, "q", "quiet cached"),
    "git submodule foreach": Starter(Then.LINE_AND_ARGUMENTS, "q", "quiet recursive", moves="*"),
    "git filter-branch": Starter(
        Then.NOTHING,
        "d:f",
        "setup= subdirectory-filter= env-filter= tree-filter= index-filter= parent-filter= "
        "msg-filter= commit-filter= tag-name-filter= original= state-branch= force prune-empty",
        options_behind=EVERYWHERE,
        lines="--setup --env-filter --tree-filter --index-filter --parent-filter --msg-filter "
        "--commit-filter --tag-name-filter",
        moves="*",
    ),
    "git difftool": Starter(
        Then.NOTHING,
        "dgyt:x:",
        "dir-diff tool= extcmd=",
        options_behind=EVERYWHERE,
        lines="-x --extcmd",
        fed=True,
    ),
    "git grep": Starter(
        Then.NOTHING,
        "0123456789aIivwhHEGPFnlLzocpWqrO::m:f:e:A:B:C:",
        "open-files-in-pager? or",
        options_behind=EVERYWHERE,
        lines="-O --open-files-in-pager",
        fed=True,
    ),
    "git clone": _LOCAL_END._replace(
        short="vqnlshu:c:o:b:j:46",
        long="upload-pack= config=",
        lines="-u --upload-pack",
        settings="-c --config",
    ),
    **dict.fromkeys(
        (
            "git fetch",
            "git pull",
            "git push",
            "git ls-remote",
            "git archive",
            "git fetch-pack",
            "git send-pack",
            "git send-email",
        ),
        _LOCAL_END,
    ),
}
