# COMMAND starts a neighbour and the agent; the agent starts a child, and is told when both and the
# server are known by their names. The mark is in everybody's command line.
exec 3<&0 </dev/null
bash -c "exec -a neighbour-$2 sleep 1000" & neighbour=$!
bash "${0%/*}/$1" "$2"
echo "agent $?"
kill -0 $neighbour && echo neighbour lives
kill -TERM $neighbour
wait $neighbour
echo "neighbour $?"
