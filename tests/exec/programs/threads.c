/* threads PROGRAM ROUNDS: round by round, a child in which all of eight threads exec PROGRAM at once,
   the leader among them. Prints how many children ended with 0. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char *words[] = {"program", "x", NULL};
static char *program;
static pthread_barrier_t barrier;

static void *go(void *unused) {
    (void)unused;
    pthread_barrier_wait(&barrier);
    execve(program, words, environ);
    _exit(1);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    program = argv[1];
    int good = 0;
    for (int round = 0; round < atoi(argv[2]); round++) {
        pid_t child = fork();
        if (child == 0) {
            pthread_barrier_init(&barrier, NULL, 8);
            for (int i = 0; i < 7; i++) {
                pthread_t thread;
                pthread_create(&thread, NULL, go, NULL);
            }
            go(NULL);
        }
        int status;
        waitpid(child, &status, 0);
        good += status == 0;
    }
    printf("%d\n", good);
    return 0;
}
