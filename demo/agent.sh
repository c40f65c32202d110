# A scripted agent whose pkill matches too much: itself, its parent processes, the server that it
# started, and a server outside the session.
set -u

name=${1:?a name that all these processes have in their command lines}

"$name-server" 1000 &
server=$!
echo "$server" >server.pid

echo "agent: pkill -f $name"
pkill -f "$name"
echo "agent: pkill exited with status $?, and I still run"

wait "$server" 2>/dev/null
echo "agent: I may end the server that I started: it ended with status $?"

echo "agent: kill -9 -1"
sh -c 'kill -9 -1'
echo "agent: I still run"
