/* traced_race HOW GOOD BAD SECONDS: children that their own parent traces exec what the parent flips.
   HOW, words of it: path or word (what is flipped), attached (else the child asks to be traced),
   i386, ends (a thread of the tracer ends it meanwhile), other (a thread that does not lead the child
   makes the exec). Prints how the children ended. */
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "i386.h"

static const int ENOUGH = 20; /* of each of the two ends that prove something */

struct shared {
    unsigned words[3], none; /* for i386: 32 bits each */
    char path[1024], word[16], name[16];
    volatile int may_go, over;
    int ran, denied, failed, killed;
};
static struct shared *shared;
static const char *how, *good, *bad;

static int is(const char *word) { return !!strstr(how, word); }

static void *flip(void *unused) {
    int flips_path = is("path"), flips_word = is("word");
    unsigned seed = 1;
    for (unsigned i = 0; !shared->over; i++) {
        if (flips_path) strcpy(shared->path, i & 1 ? bad : good);
        if (flips_word) memcpy(shared->word, i & 1 ? "push" : "pull", 5);
        for (volatile int j = 0; j < rand_r(&seed) % 2000; j++) {}
    }
    return unused;
}

static void *end(void *unused) {
    unsigned seed = getpid();
    while (!shared->may_go) {}
    for (volatile int j = rand_r(&seed) % 1000000; j > 0; j--) {}
    _exit(0);
    return unused;
}

static void *run(void *unused) {
    if (is("i386")) {
        errno = -i386(11, (unsigned)(unsigned long)shared->path,
                      (unsigned)(unsigned long)shared->words,
                      (unsigned)(unsigned long)&shared->none, 0, 0);
    } else {
        char *words[] = {"first", shared->word, NULL}, *none[] = {NULL};
        execve(shared->path, words, none);
    }
    _exit(errno == EACCES ? 100 : 101);
    return unused;
}

static void *wait_for_ever(void *unused) {
    for (;;) pause();
    return unused;
}

static void child(void) {
    if (!is("attached")) ptrace(PTRACE_TRACEME, 0, NULL, NULL), shared->may_go = 1;
    while (!shared->may_go) {}
    pthread_t thread;
    if (is("other")) pthread_create(&thread, NULL, run, NULL), wait_for_ever(NULL);
    run(NULL);
}

static void count(int status) {
    if (WIFSIGNALED(status)) shared->killed++;
    else if (WEXITSTATUS(status) == 100) shared->denied++;
    else if (WEXITSTATUS(status) == 101) shared->failed++;
    else shared->ran++;
}

static int trace(void) {
    pid_t pid = fork();
    if (pid == 0) child();
    if (is("attached")) {
        int status;
        if (ptrace(PTRACE_ATTACH, pid, NULL, NULL)) return 3;
        if (waitpid(pid, &status, __WALL) != pid) return 3;
        ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACEEXEC);
        ptrace(PTRACE_CONT, pid, NULL, NULL);
        shared->may_go = 1;
    }
    for (;;) { /* counted before it is reaped: the thread that ends us may come between */
        siginfo_t seen;
        int status;
        if (waitid(P_ALL, 0, &seen, WEXITED | WSTOPPED | WNOWAIT | __WALL)) return 3;
        int is_over = seen.si_pid == pid && seen.si_code != CLD_TRAPPED &&
                      seen.si_code != CLD_STOPPED;
        if (is_over) count(seen.si_code == CLD_EXITED ? seen.si_status << 8 : seen.si_status);
        if (waitpid(seen.si_pid, &status, __WALL) != seen.si_pid) return 3;
        if (is_over) return 0;
        if (WIFSTOPPED(status))
            ptrace(PTRACE_CONT, seen.si_pid, NULL,
                   WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status));
        else if (seen.si_pid == pid) /* since then */
            return count(status), 0;
    }
}

static int trace_and_end(void) {
    pid_t tracer = fork();
    if (tracer == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, end, NULL);
        int failed = trace();
        if (failed) _exit(failed);
        for (;;) pause();
    }
    int status;
    if (waitpid(tracer, &status, 0) != tracer || WEXITSTATUS(status)) return 3;
    while (waitpid(-1, &status, 0) > 0) count(status);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    how = argv[1], good = argv[2], bad = argv[3];
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    strcpy(shared->path, good), strcpy(shared->word, "pull");
    shared->words[0] = (unsigned)(unsigned long)strcpy(shared->name, "first");
    shared->words[1] = (unsigned)(unsigned long)shared->word;
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, flip, NULL);
    time_t start = time(NULL);
    int failed = 0;
    while (!failed && (shared->ran < ENOUGH || shared->killed < ENOUGH) &&
           time(NULL) - start < atoi(argv[4])) {
        shared->may_go = 0;
        failed = is("ends") ? trace_and_end() : trace();
    }
    shared->over = 1;
    printf("ran %d denied %d failed %d killed %d\n", shared->ran, shared->denied, shared->failed,
           shared->killed);
    return failed;
}
