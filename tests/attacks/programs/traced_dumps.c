/* traced_dumps GOOD BAD SECONDS: children exec what the parent flips, slowly. Meanwhile a thread of
   their tracer dumps core, and the kernel kills the tracer as its parent ends. Then nothing stops a
   child after its exec. Prints how the children ended. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MANY 16 /* long words, which the kernel copies */

struct shared {
    char path[1024];
    volatile int may_go, execs, dumps, over;
    int ran, denied, failed, killed;
};
static struct shared *shared;
static const char *good, *bad;
static char word[120000], *words[MANY + 2];
static double dumps_after, is_killed_after;
static unsigned seed;
static volatile pid_t tracer;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static double at_random(double most) { return most * rand_r(&seed) / RAND_MAX; }

static void spin(double seconds) {
    double end = now() + seconds;
    while (now() < end) {}
}

static void *flip(void *unused) {
    unsigned own_seed = 1;
    for (unsigned i = 0; !shared->over; i++) {
        strcpy(shared->path, i & 1 ? bad : good);
        for (volatile int j = 0; j < rand_r(&own_seed) % 3000; j++) {}
    }
    return unused;
}

static void *dump(void *unused) {
    while (!shared->execs) {}
    spin(dumps_after);
    shared->dumps = 1;
    *(volatile int *)0 = 0; /* without a call, which sigwrap would hold */
    return unused;
}

static void child(void) {
    char *none[] = {NULL};
    while (!shared->may_go) {}
    shared->execs = 1;
    execve(shared->path, words, none);
    _exit(errno == EACCES ? 100 : 101);
}

static void trace(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct rlimit core = {400000, 400000};
    setrlimit(RLIMIT_CORE, &core);
    pid_t pid = fork();
    if (pid == 0) child();
    int status;
    if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) || waitpid(pid, &status, __WALL) != pid) _exit(3);
    ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACEEXEC);
    ptrace(PTRACE_CONT, pid, NULL, NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, dump, NULL);
    usleep(1000), shared->may_go = 1;
    waitpid(pid, &status, __WALL); /* after the exec, the tracer never lets it go on */
    for (;;) pause();
}

static void *start_and_end(void *unused) {
    tracer = fork();
    if (tracer == 0) trace();
    while (!shared->dumps) usleep(50);
    spin(is_killed_after);
    return unused;
}

static void count(int status) {
    if (WIFSIGNALED(status)) shared->killed++;
    else if (WEXITSTATUS(status) == 100) shared->denied++;
    else if (WEXITSTATUS(status) == 101) shared->failed++;
    else shared->ran++;
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    good = argv[1], bad = argv[2];
    memset(word, 'x', sizeof word - 1);
    words[0] = "first", words[1] = "pull";
    for (int i = 2; i <= MANY; i++) words[i] = word;
    struct rlimit stack = {64 << 20, RLIM_INFINITY}; /* a quarter of it is for the words */
    setrlimit(RLIMIT_STACK, &stack);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    strcpy(shared->path, good);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, flip, NULL);
    double end = now() + atof(argv[3]);
    while (now() < end) {
        shared->may_go = shared->execs = shared->dumps = 0;
        dumps_after = at_random(0.006), is_killed_after = at_random(0.0006);
        pthread_create(&thread, NULL, start_and_end, NULL), pthread_join(thread, NULL);
        int status;
        for (pid_t pid; (pid = waitpid(-1, &status, 0)) > 0;)
            if (pid != tracer) count(status);
    }
    shared->over = 1;
    printf("ran %d denied %d failed %d killed %d\n", shared->ran, shared->denied, shared->failed,
           shared->killed);
    return 0;
}
