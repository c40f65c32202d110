# make demo: an agent whose pkill would hit too much, then a small build, each under sigwrap, and what
# the logs say. Leaves nothing behind.
set -eu

folder=$(mktemp -d)
outside=
trap 'rm -rf "$folder"; [ -z "$outside" ] || kill "$outside"' EXIT
export SIGWRAP_STORE="$folder/store"
cp "$(dirname "$0")"/*.sh "$folder"
cd "$folder"

say() {
    printf '\n%s\n' "--- $*"
}

# The same program under three names, so that one pattern matches all of them.
name=demo$$
for role in server outside; do
    ln -s "$(command -v sleep)" "$name-$role"
done
PATH="$folder:$PATH"

if command -v pkill >/dev/null; then
    "$name-outside" 1000 &
    outside=$!

    say "an agent runs: pkill -f $name"
    sigwrap --name agent --report -- sh session.sh "$name"
    kill -0 "$outside" && echo "and the server outside lives, too"

    say "sigwrap replay agent --instant: whom it tried to kill"
    sigwrap replay agent --instant >timeline
    grep -E '  signal_(sent|blocked) ' timeline | cut -c 1-118

    server=$(cat server.pid)
    say "sigwrap why agent $server: who ended the agent's server"
    sigwrap why agent "$server"
fi

say "sigwrap --name demo --report -- sh build.sh"
sigwrap --name demo --report -- sh build.sh

say "sigwrap report: what happened"
sigwrap report demo

say "sigwrap replay demo --instant: its first and last events"
sigwrap replay demo --instant >timeline
head -n 8 timeline | cut -c 1-118
echo "     ..."
tail -n 6 timeline | cut -c 1-118

say "sigwrap verify: the log is what sigwrap wrote"
sigwrap verify demo

watcher=$(cat watcher.pid)
say "the watcher that the build left running (pid $watcher)"
if kill -0 "$watcher" 2>/dev/null; then
    echo "is still there"
    exit 1
fi
echo "is gone: what COMMAND leaves behind ends with it"
