/* traced_alike ROUNDS SECONDS: children that their own parent traces exec this very program, and flip
   the word pull to push meanwhile. Before that they make their own words say push, and addresses
   aren't random: so what is loaded looks as what was there. Prints how the children ended. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char self[1024], word[] = "pull";
static volatile int execs;
static int delay_us;

static void *flip(void *unused) {
    while (!execs) {}
    usleep(delay_us);
    memcpy(word, "push", 4);
    return unused;
}

static void child(char **argv) {
    char *words[] = {argv[0], word, NULL}, *last[] = {"DELAY=000", NULL};
    pthread_t thread;
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    memcpy(argv[1], "push", 4);
    pthread_create(&thread, NULL, flip, NULL);
    usleep(1000);
    execs = 1;
    execve(self, words, last);
    _exit(errno == EACCES ? 100 : 101);
}

static int trace(int delay) {
    char variable[16], *words[] = {"alike", word, NULL}, *first[] = {variable, NULL};
    snprintf(variable, sizeof variable, "DELAY=%03d", delay);
    pid_t pid = fork();
    if (pid == 0) {
        personality(ADDR_NO_RANDOMIZE);
        execve(self, words, first);
        _exit(101);
    }
    int status;
    while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status))
        ptrace(PTRACE_CONT, pid, NULL, WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status));
    return status;
}

int main(int argc, char **argv) {
    readlink("/proc/self/exe", self, sizeof self - 1);
    if (argc == 2) {
        delay_us = atoi(getenv("DELAY"));
        if (delay_us) child(argv);
        return printf("ran %s\n", argv[1]) < 0;
    }
    if (argc != 3) return 2;
    int ran = 0, denied = 0, failed = 0, killed = 0;
    time_t start = time(NULL);
    for (int i = 0; (ran < atoi(argv[1]) || killed < atoi(argv[1])) &&
                    time(NULL) - start < atoi(argv[2]); i++) {
        int status = trace(60 + i % 20 * 15);
        if (WIFSIGNALED(status)) killed++;
        else if (WEXITSTATUS(status) == 100) denied++;
        else if (WEXITSTATUS(status) == 101) failed++;
        else ran++;
    }
    printf("ran %d denied %d failed %d killed %d\n", ran, denied, failed, killed);
    return 0;
}
