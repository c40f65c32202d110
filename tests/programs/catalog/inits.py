"""Inits for containers: as programs, and their own suites with sigwrap-forward in their place."""

from __future__ import annotations

import re

from tests.programs.program import AWAIT, Program

_SOURCES = """\
# Their source packages, from where this system has its packages.
mkdir parts lists
for list in /etc/apt/sources.list.d/*.sources; do
    [ -e "$list" ] && sed 's/^Types:.*/Types: deb-src/' "$list" >parts/${list##*/}
done
[ -e /etc/apt/sources.list ] && sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >parts/list.list
apt="-qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=$PWD/parts"
apt="$apt -o Dir::State::lists=$PWD/lists -o APT::Sandbox::User=root"
apt-get $apt update || true
"""


def _setup(package: str, *libraries: str) -> str:
    """Only what its authors wrote: a mirror may lack what Debian adds."""
    return (
        f"{_SOURCES}apt-get $apt source --download-only {package} || true\n"
        f"tar xf {package}_*.orig.tar.gz; rm -r lists; mv {package}-* source\n"
        "/usr/bin/python3 -m venv python\n"
        f"python/bin/python -m pip install -q {' '.join(libraries)}"
    )


# What the suite wants of python-prctl, which would have to be compiled. Its process group test is
# left out: sigwrap-forward has no such option. Make leaves two signals ignored that have no name.
_TINI_PARTS = """\
cat >source/test/prctl.py <<'EOF'
import ctypes
def set_child_subreaper(on): ctypes.CDLL(None).prctl(36, on, 0, 0, 0)
EOF
cc -o sigconf-test source/test/sigconf/sigconf-test.c
sed -i -e '/# Run the process group test/,/# Test that the signals/d' \
    -e 's/SIGNUM_TO_SIGNAME.n + 1./SIGNUM_TO_SIGNAME.get(n + 1)/' source/test/run_inner_tests.py
"""


def _stand_in(name: str, before: str = "") -> str:
    """On PATH, before the real one: natively the real one, else sigwrap-forward, which runs its
    command by what stands before it."""
    return (
        "mkdir bin; printf '#!/bin/sh\\nexec %s -- %s \"$@\"\\n'"
        f' ${{FORWARD:-$(command -v {name})}} "${{FORWARD:+{before}}}"'
        f" >bin/{name}; chmod +x bin/{name};"
        " export PATH=$PWD/bin:$PATH PYTHONDONTWRITEBYTECODE=1;"
    )


def _results(said: str) -> str:
    """Of pytest -v: a line a test."""
    return "\n".join(
        " ".join(found) for found in re.findall(r"^(tests/\S+) (PASSED|FAILED|ERROR)", said, re.M)
    )


# What sigwrap-forward promises too: not their own options, messages and setsid mode, and
# not that dumb-init stops even where its child has caught the signal that stops.
_DUMB_INIT_TESTS = (
    "tests/exit_status_test.py tests/proxies_signals_test.py::test_proxies_signals"
    " tests/tty_test.py::test_tty tests/tty_test.py::test_child_gets_controlling_tty_if_we_had_one"
)

PROGRAMS = [
    Program(
        name="dumb-init and tini",
        needs=("dumb-init", "tini"),
        steps=(
            "dumb-init sh -c 'exit 3'; echo $?; dumb-init sh -c 'kill -TERM $$'; echo $?",
            "tini -s -- sh -c 'exit 3'; echo $?; tini -s -g -- sh -c 'kill -INT $$'; echo $?",
            f"{AWAIT} tini -s -- sh -c 'trap \"exit 4\" TERM; >up; sleep 60 & wait' &"
            " await test -e up; kill -TERM $!; wait $!; echo $?; rm up",
            f"{AWAIT} dumb-init sh -c 'trap \"exit 4\" TERM; >up; sleep 60 & wait' &"
            " await test -e up; kill -TERM $!; wait $!; echo $?; rm up",
        ),
        quick=True,
    ),
    Program(
        name="dumb-init's suite, sigwrap-forward in its place",
        needs=("dumb-init",),
        forwarded=True,
        setup=_setup("dumb-init", "pytest", "py", "pytest-timeout"),
        line=(
            *("bash", "-c"),
            f"{_stand_in('dumb-init')} cp -r $CACHE/source source; cd source;"
            f" $CACHE/python/bin/python -m pytest -v -p no:cacheprovider --timeout 15"
            f" {_DUMB_INIT_TESTS}",
        ),
        keep=_results,
        ignore_files=".",
        within_s=180,
    ),
    Program(
        name="tini's suite, sigwrap-forward in its place",
        needs=("tini", "cc"),
        forwarded=True,
        setup=f"{_setup('tini', 'psutil', 'bitmap')}\n{_TINI_PARTS}",
        line=(
            *("bash", "-c"),
            # tini's own command has a process group of its own, which the suite relies on
            f"{_stand_in('tini', 'setsid')} export PATH=$CACHE/python/bin:$PATH"
            " SOURCE_DIR=$CACHE/source BUILD_DIR=$PWD/bin FORCE_SUBREAPER=1 MINIMAL=1;"
            " cp $CACHE/sigconf-test bin; python3 $CACHE/source/test/run_inner_tests.py",
        ),
        must_say="All done",
        ignore_files=".",
        within_s=60,
    ),
]
