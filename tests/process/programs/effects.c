#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
/* Execs and signals, as many as there can be, until it is killed. Says what took effect after it took effect. One write each, shorter than PIPE_BUF. */
static void say(const char *what, int pid, int value) {
    char line[64];
    int size = snprintf(line, sizeof line, "%s %d %d\n", what, pid, value);
    if (write(1, line, size) != size) _exit(1);
}
static void receive(void) {
    sigset_t all;
    siginfo_t info;
    sigfillset(&all);
    for (;;)
        if (sigwaitinfo(&all, &info) > 0 && info.si_code != SI_KERNEL)
            say("signal", info.si_pid, info.si_value.sival_int);
}
int main(int count, char **words) {
    if (count > 3) { /* the program of an exec: note RECEIVER NUMBER */
        int receiver = atoi(words[2]), number = atoi(words[3]);
        say("exec", getpid(), number);
        union sigval value = {.sival_int = number};
        if (number % 3) sigqueue(receiver, SIGRTMIN + number % 20, value);
        else {
            siginfo_t info = {.si_signo = SIGRTMIN, .si_code = SI_QUEUE};
            info.si_pid = getpid(), info.si_uid = getuid(), info.si_value = value;
            syscall(SYS_rt_tgsigqueueinfo, receiver, receiver, SIGRTMIN, &info);
        }
        return 0;
    }
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, 0);
    int receiver = fork();
    if (receiver == 0) receive();
    char to[16], name[16];
    snprintf(to, sizeof to, "%d", receiver);
    for (int worker = 0; worker < 3; worker++)
        if (fork() == 0)
            for (int number = worker;; number += 3) {
                int pid = number % 2 ? vfork() : fork();
                if (pid == 0) {
                    snprintf(name, sizeof name, "%d", number);
                    char *argv[] = {words[0], "note", to, name, 0};
                    execv(words[0], argv);
                    _exit(1);
                }
                waitpid(pid, 0, 0);
            }
    for (;;) pause();
}
