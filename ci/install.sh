#!/bin/sh
# What builds a devcontainer with this feature runs, as root: the feature's options come as variables.
set -eu
SIGWRAP_CI_FOLDER=/usr/local/lib/sigwrap
SIGWRAP_CI_SOURCE=${SOURCE:-}
SIGWRAP_CI_SHA256=${SHA256:-}
export SIGWRAP_CI_FOLDER SIGWRAP_CI_SOURCE SIGWRAP_CI_SHA256
sh "$(dirname "$0")/sigwrap-ci.sh" install
for name in sigwrap sigwrap-forward sigwrap-stub sigwrap-shell; do
    ln -sf "$SIGWRAP_CI_FOLDER/bin/$name" "/usr/local/bin/$name"
done
