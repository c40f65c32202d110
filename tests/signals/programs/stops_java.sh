mkfifo said; java -XX:TieredStopAtLevel=1 -Xshare:auto Main.java >said & exec 3<said
read -r line <&3; echo $line; kill $!; read -r line <&3; echo $line; wait $!; echo $?
