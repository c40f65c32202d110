set -o pipefail
diff <(echo 1) <(echo 2); echo $?
coproc { read x; echo "got $x"; }
echo hello >&${COPROC[1]}; read y <&${COPROC[0]}; echo "$y"
wait -n; mapfile -t lines < <(printf '%s\n' a b c); echo ${#lines[@]}
yes | head -1; echo ${PIPESTATUS[*]}
set -m; sleep 600 & jobs -r | wc -l; kill %1; wait; echo end
time -p true 2>/dev/null; disown -a; exit 5
