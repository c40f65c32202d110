"""What comes from package registries: tools of Node, Rust and Java that use many processes."""

from __future__ import annotations

from pathlib import Path

from tests.programs.program import Do, Program, See, Send

_PROJECTS = Path(__file__).parents[1] / "projects"
_RESULTS = Path(__file__).parents[1] / "programs" / "results.py"

_NODE = "cp -r $CACHE/node/. .; ln -s $CACHE/node_modules .;"
_CARGO = """\
cp -r $CACHE/crate/. .; mkdir .cargo
printf '[source.crates-io]\\nreplace-with = "ours"\\n[source.ours]\\ndirectory = "%s/vendor"\\n' \\
    $CACHE >.cargo/config.toml
"""
_RUST = "export PATH=/usr/bin:$PATH;"
"""rustup's programs look for their toolchains in the home folder, which is another here."""
_MAVEN = "mvn -B -q -Dmaven.repo.local="


def _npm(package: str) -> str:
    return f"cp -r {_PROJECTS}/node .; npm install --no-audit --no-fund --prefix . {package}"


PROGRAMS = [
    Program(
        name="jest",
        needs=("node", "npm"),
        setup=_npm("jest@29.7.0"),
        before=_NODE,
        steps=tuple(
            f"node_modules/.bin/jest {how} --ci --json --outputFile out.json >said 2>&1; echo $?;"
            " node results.js"
            for how in (
                "--maxWorkers=3",
                "--maxWorkers=3 --workerThreads --testPathIgnorePatterns dying",
                "--runInBand --testPathIgnorePatterns dying --forceExit",
            )
        ),
        must_say="^passed a child is killed",
        ignore_files="out.json|said",
        within_s=180,
    ),
    Program(
        name="vitest",
        needs=("node", "npm"),
        setup=_npm("vitest@2.1.9"),
        before=f"{_NODE} rm tests/dying.test.js",
        steps=tuple(
            f"node_modules/.bin/vitest run --globals {how}"
            " --reporter json --outputFile out.json >said 2>&1; echo $?; node results.js"
            for how in ("--pool forks", "--pool threads", "--pool forks --no-file-parallelism")
        ),
        must_say="^passed a child is killed",
        ignore_files="out.json|said",
        within_s=180,
    ),
    Program(
        name="concurrently",
        needs=("node", "npm"),
        setup=_npm("concurrently@9.1.2"),
        before=_NODE,
        steps=tuple(
            f"node_modules/.bin/concurrently --no-color {words} | sort; echo ${{PIPESTATUS[0]}}"
            for words in (
                "'echo one' 'echo two; exit 3'",
                "--kill-others-on-fail 'exec sleep 60' 'exit 3'",
                "--kill-others --kill-signal SIGKILL -n a,b 'exec sleep 60' 'true'",
                "--kill-others -s first 'exec sleep 60' 'sleep 0.2'",
                "--restart-tries 2 'exit 4'",
            )
        ),
    ),
    Program(
        name="nodemon",
        needs=("node", "npm", "pgrep"),
        setup=_npm("nodemon@3.1.9"),
        before=f"{_NODE} echo 1 >n",
        line=(
            *("$CACHE/node_modules/.bin/nodemon", "--delay", "0.1", "--signal", "SIGTERM"),
            *("--watch", "n", "app.js", "word"),
        ),
        acts=(
            See("started word 1"),
            Do("echo 2 >n"),
            See("started word 2"),
            Do("echo 3 >n"),
            See("started word 3"),
            Send("INT"),
        ),
        after="pgrep -u $(id -u) -c -f 'app.js wor[d]'",
        normalize=((r"^.*still waiting for \d+ sub-process.*\n", ""),),
        interrupted=True,
    ),
    Program(
        name="cargo build and test",
        needs=("cargo", "rustc", "cc"),
        there="PATH=/usr/bin:$PATH cargo -V >/dev/null || { echo no cargo; exit 1; }",
        setup=f"cp -r {_PROJECTS}/crate .; cd crate; cargo vendor -q ../vendor; rm Cargo.lock",
        before=_CARGO,
        steps=(
            f"{_RUST} cargo build --offline -q 2>&1; target/debug/small",
            f"{_RUST} cargo test --offline --no-fail-fast >said 2>&1; echo $?;"
            " grep -e '^test ' -e ' failed;' said | sort",
            f"{_RUST} echo 'fn main() {{ }}' >src/main.rs; cargo run --offline -q;"
            " cargo clean -q 2>&1; ls",
        ),
        must_say="^test a_child_is_killed [.]+ ok",
        normalize=((r"; finished in .*", ""),),
        ignore_files="^target/|^Cargo.lock$|^said$",
        within_s=300,
    ),
    Program(
        name="maven",
        needs=("mvn", "java"),
        setup=f"cp {_RESULTS} .; cp -r {_PROJECTS}/maven .; cd maven;"
        f" {_MAVEN}$CACHE/repository -Dmaven.test.failure.ignore test; rm -r target",
        before="cp -r $CACHE/maven/. .; cp -r $CACHE/repository .",
        steps=(
            f"{_MAVEN}$PWD/repository -o test >said 2>&1; echo $?;"
            " /usr/bin/python3 $CACHE/results.py target/surefire-reports/*.xml",
        ),
        must_say="^passed FirstTest",
        ignore_files="^repository|^said$|^target/",
        within_s=300,
    ),
]
