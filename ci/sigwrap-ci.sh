#!/bin/sh
# sigwrap in a CI job, by POSIX sh alone:
# sigwrap-ci.sh install | run [COMMAND…] | report | check [LOG…] | ship.
# What it is to do comes in by variables, so that no input is ever read as shell (docs/ci.md has them).
set -eu

fail() {
    printf 'sigwrap-ci: %s\n' "$1" >&2
    exit 125
}

# The folder has to be the same, by whatever step and from wherever this is called.
folder=${SIGWRAP_CI_FOLDER:-.sigwrap-ci}
case $folder in
/*) ;;
*) folder=$PWD/$folder ;;
esac
case $folder in
*'
'*) fail "SIGWRAP_CI_FOLDER: a folder's name of several lines is none for a CI job" ;;
esac
bin=$folder/bin
artifact=$folder/artifact
SIGWRAP_STORE=$folder/store
export SIGWRAP_STORE

install_it() {
    rm -f -- "$bin/sigwrap"
    source=${SIGWRAP_CI_SOURCE:-}
    wanted=${SIGWRAP_CI_SHA256:-}
    [ -n "$source" ] || fail 'SIGWRAP_CI_SOURCE is not set: a path or an address of the one file'
    [ -n "$wanted" ] || fail "SIGWRAP_CI_SHA256 is not set: the digest that $source must have"
    case $wanted in
    *[!0-9a-f]*) fail "SIGWRAP_CI_SHA256 is no digest, 64 of the digits 0-9 and a-f: $wanted" ;;
    esac
    [ ${#wanted} -eq 64 ] || fail "SIGWRAP_CI_SHA256 has ${#wanted} digits, and a digest has 64"
    mkdir -p -- "$bin" "$artifact" || fail "$folder can't be made: set SIGWRAP_CI_FOLDER"
    new=$bin/sigwrap.new
    trap 'rm -f -- "$new"' EXIT
    get "$source" "$new" || fail "$source can't be had"
    found=$(digest "$new")
    [ "$found" = "$wanted" ] ||
        fail "$source has the sha256 digest $found, not $wanted: it is not installed"
    chmod 755 "$new"
    mv -- "$new" "$bin/sigwrap"
    for role in sigwrap-forward sigwrap-stub sigwrap-shell; do
        ln -sf sigwrap "$bin/$role"
    done
    if [ "$0" != "$bin/sigwrap-ci" ]; then
        cp -- "$0" "$bin/sigwrap-ci"
        chmod 755 "$bin/sigwrap-ci"
    fi
    tell_the_next_steps
    "$bin/sigwrap" --version
}

get() {
    case $1 in
    http://* | https://*)
        if command -v curl >/dev/null; then
            curl -fsSL -o "$2" -- "$1"
        elif command -v wget >/dev/null; then
            wget -q -O "$2" -- "$1"
        else
            fail "neither curl nor wget is here to get $1 with"
        fi
        ;;
    *) cp -- "$1" "$2" ;;
    esac
}

digest() {
    if command -v sha256sum >/dev/null; then
        line=$(sha256sum <"$1")
    elif command -v shasum >/dev/null; then
        line=$(shasum -a 256 <"$1")
    elif command -v openssl >/dev/null; then
        line=$(openssl dgst -sha256 -r <"$1")
    else
        fail 'neither sha256sum nor shasum nor openssl is here to check the digest with'
    fi
    printf '%s' "${line%% *}"
}

tell_the_next_steps() {
    [ -z "${GITHUB_PATH:-}" ] || printf '%s\n' "$bin" >>"$GITHUB_PATH"
    [ -z "${GITHUB_ENV:-}" ] ||
        printf '%s=%s\n' SIGWRAP_CI_FOLDER "$folder" SIGWRAP_STORE "$SIGWRAP_STORE" >>"$GITHUB_ENV"
    [ -z "${GITHUB_OUTPUT:-}" ] || printf '%s=%s\n' artifact "$artifact" >>"$GITHUB_OUTPUT"
}

# By exec: whoever cancels the job signals sigwrap itself, or ends the shell above it. The grace leaves
# time to seal the log before a runner's next signal, 7.5 s after its first.
run_it() {
    need_it
    title=
    if [ $# -eq 0 ]; then
        [ -n "${SIGWRAP_CI_RUN:-}" ] || fail 'no command given: sigwrap-ci.sh run COMMAND, or SIGWRAP_CI_RUN'
        (printf '%s\n' "$SIGWRAP_CI_RUN" >"$folder/job.sh") || fail "$folder/job.sh can't be written"
        set_title
        case ${SIGWRAP_CI_SHELL:-sh} in
        bash) set -- bash --noprofile --norc -eo pipefail "$folder/job.sh" ;;
        sh) set -- sh -e "$folder/job.sh" ;;
        *) fail "SIGWRAP_CI_SHELL is sh or bash, not $SIGWRAP_CI_SHELL" ;;
        esac
    fi
    exec "$bin/sigwrap" --end-with-caller --grace "${SIGWRAP_CI_GRACE:-6s}" ${title:+--name "$title"} \
        --policy "${SIGWRAP_CI_POLICY:-ci}" -- "$@"
}

# The report's title: the first line of SIGWRAP_CI_RUN that is no comment.
set_title() {
    while IFS= read -r title; do
        case $title in
        '' | '#'*) ;;
        *) break ;;
        esac
    done <"$folder/job.sh"
    # A session's name has no slash, and no end that makes it a file.
    title=$(printf '%s' "${title%.db}" | tr / _)
}

report_it() {
    need_it
    mkdir -p -- "$artifact"
    "$bin/sigwrap" sessions recover >&2 || true # of a job that was killed; what it can't, verify says
    : >"$artifact/report.md"
    : >"$artifact/verify.txt"
    status=0
    logs=0
    for log in "$SIGWRAP_STORE"/sessions/*.db; do
        [ -f "$log" ] || continue
        logs=$((logs + 1))
        cp -- "$log" "$artifact/"
        "$bin/sigwrap" report --format md "$log" >>"$artifact/report.md" || status=1
        "$bin/sigwrap" verify "$log" >>"$artifact/verify.txt" || status=1
        [ -z "${GITHUB_ACTIONS:-}" ] || "$bin/sigwrap" report --format github "$log" || status=1
    done
    [ "$logs" -gt 0 ] || fail "nothing has run: there is no log in $SIGWRAP_STORE"
    [ -z "${GITHUB_STEP_SUMMARY:-}" ] || summarize || {
        printf 'sigwrap-ci: %s\n' "the summary can't be written to; the report is $artifact/report.md" >&2
        status=1
    }
    cat "$artifact/verify.txt"
    return "$status"
}

# GitHub takes a megabyte from a step, or nothing.
summarize() {
    head -c 1000000 "$artifact/report.md" >>"$GITHUB_STEP_SUMMARY" || return
    [ "$(wc -c <"$artifact/report.md")" -le 1000000 ] ||
        printf '\n\n… The rest is in report.md of the artifact.\n' >>"$GITHUB_STEP_SUMMARY"
}

check_it() {
    need_it
    [ -n "${SIGWRAP_CI_CHECK_POLICY:-}" ] ||
        fail 'SIGWRAP_CI_CHECK_POLICY is not set: the policy to decide anew by'
    [ $# -gt 0 ] || set -- "$artifact"/*.db
    [ -e "$1" ] || fail "there is no log $1: sigwrap-ci.sh report puts them there"
    status=0
    for log in "$@"; do
        "$bin/sigwrap" policy try "$SIGWRAP_CI_CHECK_POLICY" "$log" || status=$?
    done
    return "$status"
}

# The job could write to our files. So nothing gets the credential but the program that was installed,
# where its digest is known.
ship_it() {
    need_it
    [ -n "${SIGWRAP_CI_SHIP_TO:-}" ] || fail 'SIGWRAP_CI_SHIP_TO is not set: s3://BUCKET/PREFIX or file:///DIR'
    if [ -n "${SIGWRAP_CI_SHA256:-}" ]; then
        found=$(digest "$bin/sigwrap")
        [ "$found" = "$SIGWRAP_CI_SHA256" ] ||
            fail "$bin/sigwrap was changed: its sha256 digest is $found, not $SIGWRAP_CI_SHA256"
    fi
    exec "$bin/sigwrap" ship --all --timeout "${SIGWRAP_CI_SHIP_TIMEOUT:-30s}" --to "$SIGWRAP_CI_SHIP_TO"
}

need_it() {
    [ -x "$bin/sigwrap" ] || fail "there is no sigwrap in $bin: sigwrap-ci.sh install comes first"
}

step=${1:-}
[ $# -eq 0 ] || shift
case $step in
install) install_it ;;
run) run_it "$@" ;;
report) report_it ;;
check) check_it "$@" ;;
ship) ship_it ;;
*) fail "'$step' is none of install, run, report, check and ship" ;;
esac
