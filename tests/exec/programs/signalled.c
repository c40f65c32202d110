/* signalled PROGRAM BROKEN ROUNDS: execs BROKEN, which fails, and then PROGRAM, while the caller gets
   one signal after the other: handled, stopping and continuing ones. (SA_RESTART: a signal that
   comes before the supervisor has received the request breaks it off.) Prints how often all came out
   as it should. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void handler(int number) { (void)number; }

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    int right = 0, refused = 0;
    for (int round = 0; round < atoi(argv[3]); round++) {
        int ready[2];
        char byte;
        if (pipe(ready) < 0) return 3;
        pid_t child = fork();
        if (child == 0) {
            struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
            sigaction(SIGUSR1, &action, NULL);
            signal(SIGUSR2, SIG_IGN);
            close(ready[1]);
            char *words[] = {argv[1], "x", NULL};
            int wrong = 0;
            for (int i = 0; i < 5; i++) {
                execve(argv[2], words, environ);
                if (errno != ENOEXEC) fprintf(stderr, "errno %d\n", errno);
                wrong += errno != ENOEXEC;
            }
            if (wrong) _exit(9);
            signal(SIGUSR1, SIG_IGN);
            execve(argv[1], words, environ);
            _exit(8);
        }
        close(ready[1]);
        if (read(ready[0], &byte, 1) < 0) return 4;
        close(ready[0]);
        for (int i = 0; i < 40; i++) {
            kill(child, i % 2 ? SIGUSR1 : SIGUSR2);
            if (i % 8 == 0) {
                kill(child, SIGSTOP);
                kill(child, SIGCONT);
            }
        }
        int status;
        waitpid(child, &status, 0);
        if (status) fprintf(stderr, "status %x\n", status);
        right += status == 0;
        refused += status != 0;
    }
    printf("right %d wrong %d\n", right, refused);
    return 0;
}
