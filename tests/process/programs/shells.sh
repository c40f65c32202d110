echo a | cat | tr a b
(exit 3); echo $?
sh -c 'kill -TERM $$'; echo $?
x=$(echo inner; exit 4); echo "$x $?"
false || echo or
for i in 1 2 3; do (echo $i >&2; exit $i) & wait $!; echo $?; done
# Whether busybox says so of a job is chance.
{ sleep 600 & kill $!; wait $!; } 2>/dev/null; echo $?
trap 'echo usr1' USR1; kill -USR1 $$
trap 'echo bye' EXIT
cat <<end | wc -l
one
two
end
yes 2>/dev/null | head -2
command -v no-such-program; echo $?
no-such-program 2>/dev/null; echo $?
/tmp 2>/dev/null; echo $?
exec sh -c 'exit 9'
