/* traced_slowly HOW BAD ROUNDS SECONDS pulk: children that their own parent traces exec this very
   program with the word pull, slowly. Meanwhile another of their threads HOW:
   forges: has BAD loaded, and makes the words of the caller look like those that were judged;
   stops: has BAD loaded, and as the leader asks to be traced and stops, while one traced as well execs;
   ends: kills the process, whose leader nobody traces.
   Prints how the children ended. By the first two it goes on until ROUNDS of them have run and as
   many were killed, but for SECONDS at most. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int MANY = 150000; /* which the kernel copies before it looks at the words */

struct shared {
    char path[1024];
    volatile int tid, is_seized, execs;
    int delay_us, ran, denied, failed, killed;
};
static struct shared *shared;
static const char *how, *bad;
static char **words, **many;

static int is(const char *word) { return !strcmp(how, word); }

static void *run(void *unused) {
    char *judged[] = {words[0], words[1], words[2], words[3], words[4], "pull", NULL};
    shared->tid = gettid();
    while (!shared->is_seized) usleep(50);
    shared->execs = 1;
    execve(shared->path, judged, many);
    _exit(errno == EACCES ? 100 : 101);
    return unused;
}

static void *meanwhile(void *unused) {
    while (!shared->execs) usleep(20);
    usleep(shared->delay_us);
    if (is("forges")) strcpy(shared->path, bad), usleep(2500), words[5][3] = 'l';
    if (is("stops")) {
        strcpy(shared->path, bad), usleep(500);
        ptrace(PTRACE_TRACEME, 0, NULL, NULL), raise(SIGSTOP);
    }
    if (is("ends")) usleep(3500), kill(getpid(), SIGKILL);
    for (;;) pause();
    return unused;
}

static void child(void) {
    pthread_t thread;
    if (is("forges")) {
        shared->is_seized = !ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        pthread_create(&thread, NULL, meanwhile, NULL);
        run(NULL);
    }
    pthread_create(&thread, NULL, run, NULL);
    meanwhile(NULL);
}

static void count(int status) {
    if (WIFSIGNALED(status)) shared->killed++;
    else if (WEXITSTATUS(status) == 100) shared->denied++;
    else if (WEXITSTATUS(status) == 101) shared->failed++;
    else shared->ran++;
}

static int trace(void) {
    pid_t pid = fork(), found;
    if (pid == 0) child();
    if (!is("forges")) {
        while (!shared->tid) usleep(50);
        if (ptrace(PTRACE_ATTACH, shared->tid, NULL, NULL)) return 3;
        waitpid(shared->tid, NULL, __WALL), ptrace(PTRACE_CONT, shared->tid, NULL, NULL);
        shared->is_seized = 1;
    }
    for (int status; (found = waitpid(-1, &status, __WALL)) > 0;)
        if (!WIFSTOPPED(status)) {
            if (found == pid) count(status);
        } else if (WSTOPSIG(status) != SIGSTOP) /* which stays in its stop */
            ptrace(PTRACE_CONT, found, NULL, WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status));
    return 0;
}

static int goes_on(int round, int rounds, time_t until) {
    if (is("ends")) return round < rounds;
    return (shared->ran < rounds || shared->killed < rounds) && time(NULL) < until;
}

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    if (!strcmp(argv[5], "pull")) return puts("good pull") < 0;
    words = argv, how = argv[1], bad = argv[2];
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    many = calloc(MANY + 1, sizeof *many);
    for (int i = 0; i < MANY; i++) many[i] = "a";
    char self[1024] = "";
    readlink("/proc/self/exe", self, sizeof self - 1);
    time_t until = time(NULL) + atoi(argv[4]);
    int failed = 0;
    for (int i = 0; !failed && goes_on(i, atoi(argv[3]), until); i++) {
        strcpy(shared->path, self);
        shared->tid = shared->is_seized = shared->execs = 0;
        shared->delay_us = 100 + i % 12 * 60;
        failed = trace();
    }
    printf("ran %d denied %d failed %d killed %d\n", shared->ran, shared->denied, shared->failed,
           shared->killed);
    return failed;
}
