"""git, whose commits have the same names in every run."""

from __future__ import annotations

from tests.programs.program import Program

_ENV = """\
export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z'
git config --global user.name A; git config --global user.email a@example.org
git config --global init.defaultBranch main; git config --global advice.detachedHead false
"""

PROGRAMS = [
    Program(
        name="git",
        needs=("git",),
        before=(
            f"cat >env <<'EOF'\n{_ENV}EOF\n"
            ". ./env; git init -q --bare far.git; git init -q made; cd made\n"
            "for i in 1 2 3 4; do echo $i >$i; git add $i; git commit -qm $i; done\n"
            "git push -q ../far.git main"
        ),
        steps=(
            ". ./env; git clone -q file://$PWD/far.git near; cd near; git log --oneline",
            ". ./env; cd near; GIT_SEQUENCE_EDITOR='sed -i 2s/pick/squash/' GIT_EDITOR=true"
            " git rebase -q -i HEAD~3 2>&1; git log --format='%h %s'",
            ". ./env; cd near; printf '#!/bin/sh\\necho before commit\\n' >.git/hooks/pre-commit;"
            " printf '#!/bin/sh\\necho said: $(cat $1)\\n' >.git/hooks/commit-msg;"
            " printf '#!/bin/sh\\ncat\\nexit 1\\n' >.git/hooks/pre-push; chmod +x .git/hooks/*;"
            " echo 5 >5; git add 5; git commit -qm five; git push -q; echo $?",
            ". ./env; cd near; echo 6 >1; git stash -q; git stash pop -q; git diff;"
            " git checkout -q 1; git worktree add -q ../other HEAD~1; git -C ../other status -sb",
            ". ./env; cd near; git bisect start HEAD HEAD~2; git bisect run sh -c '! [ -e 5 ]' |"
            " head -n 99; git bisect reset",
            ". ./env; cd near; git gc -q --prune=now; git count-objects; git fsck --full 2>&1",
            ". ./env; git -C near archive HEAD | tar t; git -C near grep -c . -- 1 2",
        ),
        ignore_files=r"\.git/.*index$",
        quick=True,
    ),
]
