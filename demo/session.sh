# What a person starts under sigwrap: a runner, and below it the agent.
set -u

sh agent.sh "${1:?}"
echo "session: what runs the agent lives, too"
