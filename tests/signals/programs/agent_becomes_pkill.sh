bash -c "exec -a child-$1 sleep 1000" &
read go <&3
exec -a "pkill" pkill -TERM -f "$1" 2>/dev/null
