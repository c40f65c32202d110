#!/bin/sh
# A scripted agent for the picture in the README (demo/picture.py). No model decides anything here:
# the script runs three commands as a coding agent might, and prints what each of them answers.
set -u

run() {
    printf '\n\033[1;36m> %s\033[0m\n' "$1"
    colour=39
    output=$(eval "$1" 2>&1) || colour=31
    echo "$output" | fold -s -w 94 | sed "s/.*/$(printf '  \033[%dm&\033[0m' "$colour")/"
    sleep "${PAUSE_S:-1}"
}

say() {
    printf '\033[35magent:\033[0m %s\n' "$1"
    sleep "${PAUSE_S:-1}"
}

say "I am a script. I run the same commands each time."
run 'pkill -f "node shop-server.js"'
say "That server is not mine. I leave it alone."
run 'git push --force origin main'
say "Only the user may do that. I run the tests."
printf '\n\033[1;36m> %s\033[0m\n' ./long-test
./long-test
