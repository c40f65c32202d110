# What a ./configure does: a few small programs for each question, most in pipes and subshells.
i=0
while [ $i -lt "$1" ]; do
    echo 'int main(void) { return 0; }' | sed s/main/other/ >probe.c
    case $(uname) in Linux) ;; esac
    expr $i + 1
    test -f probe.c && cat probe.c | grep -c other
    (ls probe.c; rm -f probe.c)
    i=$((i + 1))
done
