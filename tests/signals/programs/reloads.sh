mkfifo said; "$@" >said & exec 3<said
read -r line <&3; echo $line; kill -HUP $!; read -r line <&3; echo $line
kill -TERM $!; read -r line <&3; echo $line; wait $!; echo $?
