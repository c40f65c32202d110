trap '' HUP
trap 'echo cleans; read -r line <"$1"; echo cleaned; exit 0' TERM
echo ready
sleep 1000 &
wait
