# Many ways in which something is decided. Most of it may be denied, and none of it does anything.
dir=$1
printf '#!/bin/sh\necho "$@"\n' > "$dir/script"
chmod 755 "$dir/script"
cp "$(command -v ls)" "$dir/tool"
ln -s tool "$dir/renamed"
"$dir/script" one two
"$dir/renamed" /dev/null
"$dir/tool" --nothing=
cat /dev/null
uname -s
date
env date
curl --token=abcdefgh http://ann:hunter2@localhost:1/
env FOO=1 nice -n 1 date
echo a b | xargs -n1 cat
find /dev/null -exec cat {} \;
git push --force
LD_PRELOAD=nothing id
rm -f $(seq 1 10000)
/bin/echo $(seq 1 10000) > /dev/null
PATH=$dir:$PATH renamed /dev/null
timeout 5 sleep 0
setsid true
sh -c 'kill -9 $$'
sleep 30 & kill $!; wait $!
kill -CONT 0
kill -9 1
nothing-of-this-name
exit 0
