# All wait for the end of one pipe, so none ends before the last is started; they are no more than
# that, and end with this shell, whatever ends it.
mkfifo crowd
exec 4<>crowd 3<crowd
rm crowd
i=0
while [ $i -lt "$1" ]; do /bin/cat <&3 4>&- & i=$((i + 1)); done
exec 4>&-
wait
