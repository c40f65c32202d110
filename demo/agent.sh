# An "agent" that cleans up too eagerly: its pattern matches itself, the dev server beside it, its own
# worker, and a server of somebody else's.
set -u

name=${1:?the name that all of them carry}

"$name-worker" 1000 &
worker=$!
echo "$worker" >worker.pid

echo "agent: pkill -f $name"
pkill -f "$name"
echo "agent: pkill said $?, and I am still here"

kill "$worker"
wait "$worker" 2>/dev/null
echo "agent: I may end what I started: my worker ended with status $?"
