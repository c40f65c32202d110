"""A flag is the same in each of its spellings."""

from __future__ import annotations

import shlex

import pytest

from sigwrap.policy.judge.flags import flags_of
from sigwrap.policy.judge.request import Action, CommandRequest
from sigwrap.policy.judge.tools import _PROGRAMS, _SUBCOMMANDS, _TOOLS, options_of
from sigwrap.policy.tools.cases import command_request
from tests.policy.conftest import MakeEngine

# A line, then the flags that it may have, and after `!` flags that it does not have.
LINES = """\
rm -rf x                            r f R recursive force   ! v verbose i
rm -fr x                            r f
rm -r -f x                          r f
rm x -r -- -f                       r   ! f
rm -- -rf                           ! r f
rm --recursive --force x            r f
rm --rec --forc x                   r f
rm --r x                            r   ! f
rm --no-preserve-root -R /          no-preserve-root r
rm --no-p -R /                      no-preserve-root r
rm ./-rf -                          ! r f
rm --frce x                         ! f
cp -a x y                           a archive R recursive p d
cp -S -f x y                        S suffix f
cp -S-f x y                         S   ! f
cp -rS -f x y                       r S f
cp --suffix -f x y                  suffix f
cp --suffix=-f -r x y               suffix r   ! f
cp --suf -f x y                     suffix f
mv -t x -f y                        f t
chmod -R 777 /                      R recursive
chmod -vR 777 /                     R v
chown --recursive a:b /             R
tar xzf a.tar                       x z f file extract
tar -xzf -P                         x z f P
tar xfC a.tar dir -P                x f C P
tar --extract --file a.tar          x f
sed -i.bak s/a/b/ x                 i in-place   ! b k
sed -ni s/a/b/ x                    n i
sed -e -i x                         e i
find . -name -delete                name delete
find . -exec rm -delete {} ; -delete  exec delete
find . -exec rm -delete {} +        exec delete
curl -sSLo out http://x             s S L o silent   ! u t
curl -o -k http://x                 o k insecure
curl --insecure http://x            k
git push --force                    f force   ! d
git push -uf origin main            u f
git push --forc                   f force force-with-lease
git push --force-with-lease         force-with-lease   ! f
git push --force --no-force       f
git push -o -f                      o f
git push origin -- -f               ! f
git -C -f push x                    ! f C
git --odd x push -f                 f
git-push -f                         f
git branch -D x                     D d f delete force
git branch -d -f x                  d f
git -C x branch y                   ! C c f
git branch -C x y                   C c f
git clean -fdx                      f d x
git clean -e -f                     e f
git reset --ha                      hard
git unknown -c --force              c force
docker run --privileged x           privileged
docker run x --privileged           ! privileged
docker run -v a:b --privileged x    v volume privileged
docker run -v --privileged x        v privileged
docker run --odd x --privileged y   odd privileged
docker --context x run -d y         d detach
docker container run -d y           d
podman run -it --rm x               i t rm
docker run --privileged=false x   privileged
gh pr merge 1 -sd                   s d squash delete-branch
gh pr review 1 -b -a                b a approve
npm i -g x                          g global
npm --global i x                    g
npm --dry-run false publish       dry-run
npm --dry-run publish               dry-run
npm --prefix -g x                   prefix g
npm i --location=global x           g global location
npm --location global i x           g global location
npm i --loc=global x                g
npm i --location=project x          location   ! g
npm i --location x --tag=global     location   ! g
wget -nc http://x                   nc no-clobber
wget -nv --no-parent http://x       nv np no-verbose
docker compose down -v              v volumes
docker compose -f a.yml down --volumes  v
docker-compose down -v              volumes
docker compose run web --privileged   ! privileged
pip install --user -U x             user U upgrade
pip3 install --upgrade x            U
pip install -r -U                   r U
python3 -m pip install -U x         U
kubectl -n --force delete x         n force
terraform apply -auto-approve       auto-approve
terraform apply --auto-approve      auto-approve
ssh host -t                         t
ssh host ls -t                      ! t
bash -oc posix 'x'                  o c
bash -Oc extglob x                  O c
git commit -n -m x                  no-verify n
git reset --h                       hard
shred --remove x                    u
cp --preserve x y                   p
curl --noproxy -o -k x              k
tar -V -C --remove-files -cf o z    remove-files
find . -anewer -exec -delete        delete
npm i -save-dev x                   save-dev D
docker image prune -fa              a
docker volume prune -f -a           a all
bash -lc x                          l c login
bash x -c                           ! c
bash +e -c x                        c   ! e
bash +O extglob -c x                c   ! i
unknown -xf                         x f
unknown --odd --force               odd force
unknown --odd=x --force             force
unknown --odd x --force             force
unknown --forc                    force
unknown -x -- --force               x force
unknown -- --force                  ! force
unknown --force=0                 force
unknown -f=x                        f ! x
"""


@pytest.mark.parametrize("line", LINES.splitlines())
def test_the_flags_of_a_line(line: str) -> None:
    command, _, flags = line.partition("   ")
    command, flags = (command, flags) if flags else line.split("  ", 1)
    found = _all_flags(shlex.split(command))
    present, _, absent = flags.partition("!")
    for flag in present.split():
        assert found.has(flag), flag
    for flag in absent.split():
        assert not found.has(flag), flag


def _all_flags(argv: list[str]):  # type: ignore[no-untyped-def]
    program = command_request(argv).programs[-1]
    return flags_of(program.name, program.argv)


TABLES = {**_PROGRAMS, **_TOOLS, **_SUBCOMMANDS}


@pytest.mark.parametrize("key", sorted(TABLES))
def test_an_option_has_one_meaning(key: str) -> None:
    words = [word for word in TABLES[key].split() if word != "."]
    names = [name for word in words for name in word.rstrip("=?").partition(":")[0].split(",")]
    assert len(names) == len(set(names))
    assert options_of(key).spellings.keys() >= set(names)


RULES = """\
defaults: {command: audit}
command_rules:
  - {name: forced, commands: [git, odd], flags: [force], decision: deny}
  - {name: remove, commands: [rm], flags: [-r, --force], decision: deny}
  - {name: exact, commands: [make], args: [deploy, "${PROJECT_ROOT}"], decision: deny}
  - {name: bare, commands: [make], args: [], decision: approve}
  - {name: status, commands: [git], args: [status], decision: allow}
  - {name: other, commands: [git, odd], decision: approve}
"""


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("rm -rf x", "remove"),
        ("rm -r x", "builtin:default"),
        ("busybox rm -fr x", "remove"),
        ("git push -f", "forced"),
        ("git-push -f", "forced"),
        ("odd -x --dry-run", "other"),
        ("odd -x --force", "forced"),
        ("make deploy /project/app", "exact"),
        ("make deploy /project/app x", "builtin:default"),
        ("make", "bare"),
        ("git status", "status"),
        ("git status -s", "other"),
    ],
)
def test_the_rule_for_a_line(engine: MakeEngine, line: str, rule: str) -> None:
    assert engine(RULES).decide_command(command_request(line.split())).rule == rule


@pytest.mark.parametrize(
    ("line", "rule", "action"),
    [
        ("make deploy", "exact", Action.DENY),  # more of them may follow
        ("make other", "builtin:default", Action.AUDIT),
        ("git status", "other", Action.APPROVE),
        ("git push --force", "forced", Action.DENY),
    ],
)
def test_of_cut_arguments_nothing_is_allowed(
    engine: MakeEngine, line: str, rule: str, action: Action
) -> None:
    request: CommandRequest = command_request(line.split())._replace(truncated=True)
    decision = engine(RULES).decide_command(request)
    assert (decision.rule, decision.action) == (rule, action)


OUTSIDE = """\
defaults: {command: audit}
command_rules:
  - name: rm-outside
    commands: [rm]
    flags: [r]
    outside: [build/**, /tmp/x]
    decision: approve
  - name: chown-outside
    any: [{commands: [chown]}, {commands: [chmod], outside: [build]}]
    decision: approve
"""


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("rm -rf build", False),
        ("rm -rf build/x ./build/ /project/app/build/y/z build/*", False),
        ("rm -rf", False),
        ("rm -f src", False),
        ("rm -rf /tmp/x/y", False),
        ("rm -rf src", True),
        ("rm -rf build src", True),
        ("rm -rf build/../src", True),
        ("rm -rf build ..", True),
        ("rm -rf builds", True),
        ("rm -rf /proc/self/root/etc", True),
        ("rm -rf /proc/self/cwd/build", False),
        ("rm -rf -- build -x", True),
        ("rm -rf build/\0", True),
        ("env rm --recursive src", True),
        ("chmod 777 build/x", True),  # 777 can be a path
        ("chmod build/x", False),
    ],
)
def test_a_path_outside(engine: MakeEngine, line: str, asks: bool) -> None:
    request = command_request(line.split(" "))._replace(cwd="/project/app")
    action = engine(OUTSIDE).decide_command(request).action
    assert (action is Action.APPROVE) is asks


def test_what_was_not_read_can_be_outside(engine: MakeEngine) -> None:
    made = engine(OUTSIDE)
    request = command_request(["rm", "-r", "build"])._replace(cwd="/project/app")
    assert made.decide_command(request).action is Action.AUDIT
    for other in (request._replace(truncated=True), request._replace(cwd="")):
        assert made.decide_command(other).action is Action.APPROVE
