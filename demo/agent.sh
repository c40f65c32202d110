# An "agent" that cleans up too eagerly: its pattern matches itself, what runs it, the server that it
# started, and a server of somebody else's.
set -u

name=${1:?the name that all of them carry}

"$name-server" 1000 &
server=$!
echo "$server" >server.pid

echo "agent: pkill -f $name"
pkill -f "$name"
echo "agent: pkill said $?, and I am still here"

wait "$server" 2>/dev/null
echo "agent: what I have started I may end: my server ended with status $?"

echo "agent: kill -9 -1"
sh -c 'kill -9 -1'
echo "agent: I am still here"
