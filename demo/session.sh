# The command that the user runs under sigwrap: it starts the agent.
set -u

sh agent.sh "${1:?}"
echo "session: the agent's parent process still runs"
