seq 20 | xargs -n1 -P4 sh -c 'exit $(($0 % 2))'; echo $?
find / -maxdepth 0 -exec echo found {} \;
env -i /bin/sh -c 'echo ${PATH:+path}'
nice -n 3 nice
timeout -s KILL 0.05 tail -f /dev/null; echo $?
script -qec 'echo in a terminal' /dev/null </dev/null
flock $1 echo locked
