bash -c "exec -a child-$1 sleep 1000" & child=$!
read go <&3
pkill -TERM -f "$1" 2>/dev/null
echo "pkill $?"
kill -0 $child && echo child lives
kill -TERM $child
wait $child
echo "child $?"
