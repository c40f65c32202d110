# What a person starts under sigwrap: a dev server, and beside it the agent.
set -u

name=${1:?}

"$name-devserver" 1000 &
server=$!
sh agent.sh "$name"
kill -0 "$server" && echo "session: the dev server lives"
kill "$server"
