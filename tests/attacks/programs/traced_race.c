/* traced_race HOW GOOD BAD: children that their own parent traces exec what the parent flips, until
   one has run and one was killed. HOW: path or word, seized (no stop comes after an exec), i386.
   GOOD ends at once, BAD never does. Prints how the execs ended. */
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

static const int PATIENCE_S = 20;

struct shared {
    unsigned words[3], none; /* for i386: 32 bits each */
    char path[1024], word[16], name[16];
    volatile int may_go;
};
static struct shared *shared;
static const char *how, *good, *bad;
static volatile int over;

static void *flip(void *unused) {
    int flips_path = !!strstr(how, "path"), flips_word = !!strstr(how, "word");
    for (unsigned i = 0; !over; i++) {
        if (flips_path) strcpy(shared->path, i & 1 ? bad : good);
        if (flips_word) memcpy(shared->word, i & 1 ? "push" : "pull", 5);
        for (volatile int j = 0; j < rand() % 2000; j++) {}
    }
    return unused;
}

static void child(void) {
    int is_seized = !!strstr(how, "seized");
    if (!is_seized) ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    while (is_seized && !shared->may_go) {}
    long result;
    if (strstr(how, "i386")) {
        __asm__ volatile("int $0x80" : "=a"(result)
                         : "a"(11), "b"((unsigned)(unsigned long)shared->path),
                           "c"((unsigned)(unsigned long)shared->words),
                           "d"((unsigned)(unsigned long)&shared->none) : "memory");
        errno = -result;
    } else {
        char *words[] = {"first", shared->word, NULL}, *none[] = {NULL};
        execve(shared->path, words, none);
    }
    _exit(errno == EACCES ? 100 : 101);
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    how = argv[1], good = argv[2], bad = argv[3];
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    strcpy(shared->path, good), strcpy(shared->word, "pull");
    shared->words[0] = (unsigned)(unsigned long)strcpy(shared->name, "first");
    shared->words[1] = (unsigned)(unsigned long)shared->word;
    pthread_t thread;
    pthread_create(&thread, NULL, flip, NULL);
    int ran = 0, denied = 0, failed = 0, killed = 0;
    time_t start = time(NULL);
    while ((!ran || !killed) && time(NULL) - start < PATIENCE_S) {
        shared->may_go = 0;
        pid_t pid = fork();
        if (pid == 0) child();
        if (strstr(how, "seized")) {
            if (ptrace(PTRACE_SEIZE, pid, NULL, NULL)) return 3;
            shared->may_go = 1;
        }
        int status;
        while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status))
            ptrace(PTRACE_CONT, pid, NULL, NULL);
        if (WIFSIGNALED(status)) killed++;
        else if (WEXITSTATUS(status) == 100) denied++;
        else if (WEXITSTATUS(status) == 101) failed++;
        else ran++;
    }
    over = 1;
    printf("ran %d denied %d failed %d killed %d\n", ran, denied, failed, killed);
    return 0;
}
