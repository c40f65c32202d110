cd $1 && git init -q -b main . && git config user.email a@b && git config user.name n
printf '#!/bin/sh\necho hook ran >&2\n' >.git/hooks/pre-commit
printf '#!/bin/sh\ngrep -q no "$1" && exit 1; exit 0\n' >.git/hooks/commit-msg
chmod +x .git/hooks/*
echo x >f; git add f; git commit -q -m yes
echo y >f; git commit -q -a -m no; echo refused $?
git -c core.pager='sed s/^/paged:/' -p log --format=%s
git -c alias.x='!sh -c "exit 6"' x; echo $?
git clone -q . copy && cd copy && echo z >g && git add g && git commit -q -m more
git push -q origin HEAD:other
git fetch -q && git gc -q && git fsck 2>/dev/null; git log --format=%s --all | sort
EDITOR='sed -i s/more/edited/' git commit -q --amend && git log -1 --format=%s
git stash list; git rebase -q --exec true HEAD~1; git status --short
