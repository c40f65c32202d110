# A small build with parallel workers, a check that hangs and a watcher that is left running.
set -eu

echo "build: compile two parts in parallel"
mkdir -p out
for part in lexer parser; do
    sh -c "date +%s%N >out/$part.o; gzip -f out/$part.o" &
    parts="${parts-} $!"
done
for part in $parts; do
    wait "$part"
done

echo "build: end a check that hangs"
sleep 1000 &
hung=$!
kill -TERM "$hung"
wait "$hung" || echo "build: the check ended with status $?"

echo "build: start a watcher and leave it running"
setsid sleep 1000 >/dev/null 2>&1 &
echo $! >watcher.pid

echo "build: done"
cat out/*.gz | wc -c >out/size
