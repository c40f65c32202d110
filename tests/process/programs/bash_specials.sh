set -o pipefail
diff <(echo 1) <(echo 2); echo $?
coproc { read x; echo "got $x"; }
echo hello >&${COPROC[1]}; read y <&${COPROC[0]}; echo "$y"
# `wait -n` of bash 5.2 misses a job that ends while it looks, and the dead job would stay as %1.
wait -n; wait $!; echo $?; mapfile -t lines < <(printf '%s\n' a b c); echo ${#lines[@]}
yes | head -1; echo ${PIPESTATUS[*]}
set -m; sleep 600 & jobs -r | wc -l; kill %1; wait; echo end
{ time -p true; } 2>&1 | wc -l; disown -a; exit 5
