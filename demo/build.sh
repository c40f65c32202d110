# A build as many are: workers at once, one that hangs, a watcher that nobody stops.
set -eu

echo "build: two parts at once"
mkdir -p out
for part in lexer parser; do
    sh -c "date +%s%N >out/$part.o; gzip -f out/$part.o" &
    parts="${parts-} $!"
done
for part in $parts; do
    wait "$part"
done

echo "build: a check that hangs is told to end"
sleep 1000 &
hung=$!
kill -TERM "$hung"
wait "$hung" || echo "build: it ended with status $?"

echo "build: a watcher stays behind"
setsid sleep 1000 >/dev/null 2>&1 &
echo $! >watcher.pid

echo "build: packed"
cat out/*.gz | wc -c >out/size
