export run="$1"
mkfifo $run/in $run/out
setsid sh -c 'echo $$ >$run/pid; read x <$run/in; echo "daemon got $x" >$run/out' </dev/null &
echo hello >$run/in; cat $run/out; wait; echo $?
setsid -f sh -c 'cat $run/in >$run/out'
echo again >$run/in & cat $run/out
nohup sh -c 'echo nohup' 2>/dev/null | cat
