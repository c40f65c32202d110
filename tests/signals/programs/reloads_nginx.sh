# Each signal waits for what nginx has written into its log.
mkfifo log
nginx -p "$PWD" -c nginx.conf 2>log &
exec 3<log
logged() {
    while read -r line <&3; do
        case $line in *"$1"*) return ;; esac
    done
    echo "never logged: $1"
    exit 1
}
logged "start worker process "
echo serving
kill -HUP $!
logged "start worker process "
logged "exited with code 0"  # the old worker
echo reloaded
kill -QUIT $!
wait $!
echo $?
