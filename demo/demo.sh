# make demo: run a scripted agent and then a small build under sigwrap, and show their logs. The demo
# removes its files and ends its processes.
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

# Two names for one program: the agent's pattern matches both.
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
    kill -0 "$outside" && echo "the server outside the session still runs"

    say "sigwrap replay agent --instant: the signals that it sent"
    sigwrap replay agent --instant >timeline
    grep -E '  signal_(sent|blocked) ' timeline | cut -c 1-118

    server=$(cat server.pid)
    say "sigwrap why agent $server: why the agent's server ended"
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

say "sigwrap verify: check the log"
sigwrap verify demo

watcher=$(cat watcher.pid)
say "the watcher that the build left running: pid $watcher"
if kill -0 "$watcher" 2>/dev/null; then
    echo "it still runs"
    exit 1
fi
echo "it has ended: sigwrap ends the processes that a command leaves behind"
