# One step of an agent starts nginx, others reload and stop it.
sed '/daemon/d' nginx.conf >daemon.conf
mkfifo log
exec 3<>log
logged() {
    while read -r line <&3; do
        case $line in *"$1"*) return ;; esac
    done
}
bash -c 'nginx -p "$PWD" -c daemon.conf 2>&3'
echo $?
logged "start worker process "
bash -c 'nginx -p "$PWD" -c daemon.conf -s reload 2>/dev/null'
echo $?
logged "exited with code 0"  # the old worker
bash -c 'kill -QUIT $(cat nginx.pid)'
echo $?
logged "exit"
echo ended
