# At SIGTERM, it raises it again at itself. It never gets a line from descriptor 3.
trap 'trap - TERM; kill -TERM $$' TERM
echo up
while :; do read -r line <&3; done
