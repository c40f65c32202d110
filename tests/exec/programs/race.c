/* race SHARER WHAT SECONDS ALLOWED DENIED: execs what a SHARER of its memory flips between allowed
   and denied all the while, until both have come up and SECONDS are over.
   SHARER: thread, process (CLONE_VM), file (another process writes to the mapped file), parent (the
   same, and whoever execs has just signalled a child: sigwrap traces it for that).
   WHAT: path, word (of the arguments), both, pointer (in argv, to one of two words), hidden (the
   path, and now and then nobody may read the memory).
   Prints how the execs ended. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const double PATIENCE_S = 20;

struct shared {
    char path[1024];
    char word[64];
    char *words[3];
};

static volatile struct shared *shared;
static const char *what, *paths[2];
static char word_allowed[] = "allowed-word", word_denied[] = "denied-word!";
static volatile int over;

static void put(int denied) {
    char *word = denied ? word_denied : word_allowed;
    if (!strcmp(what, "hidden")) prctl(PR_SET_DUMPABLE, rand() & 1);
    int is_both = !strcmp(what, "both");
    if (is_both || !strcmp(what, "path") || !strcmp(what, "hidden"))
        strcpy((char *)shared->path, paths[denied]);
    if (is_both || !strcmp(what, "word")) strcpy((char *)shared->word, word);
    if (!strcmp(what, "pointer")) shared->words[1] = word;
}

static void *flip(void *unused) {
    (void)unused;
    while (!over) {
        put(0);
        for (volatile int i = 0; i < rand() % 3000; i++) {}
        put(1);
        for (volatile int i = 0; i < rand() % 3000; i++) {}
    }
    return NULL;
}

static int flip_process(void *unused) {
    flip(unused);
    return 0;
}

static void handle(int unused) { (void)unused; }

static void signal_a_child(void) {
    struct sigaction action = {.sa_handler = handle};
    sigaction(SIGCHLD, &action, NULL);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) pause();
    }
    kill(child, SIGCONT);
}

static double seconds_since(struct timespec *start) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - start->tv_sec) + (now.tv_nsec - start->tv_nsec) / 1e9;
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    const char *sharer = argv[1];
    what = argv[2];
    double seconds = atof(argv[3]);
    paths[0] = argv[4], paths[1] = argv[5];
    char name[] = "/tmp/race-XXXXXX";
    int fd = mkstemp(name);
    unlink(name);
    if (ftruncate(fd, sizeof *shared) < 0) return 2;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    strcpy((char *)shared->path, paths[0]);
    strcpy((char *)shared->word, word_allowed);
    shared->words[0] = "first";
    shared->words[1] = (char *)shared->word;
    pid_t flipper = 0;
    pthread_t thread;
    if (!strcmp(sharer, "thread")) {
        pthread_create(&thread, NULL, flip, NULL);
    } else if (!strcmp(sharer, "process")) {
        size_t size = 1 << 16;
        char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        flipper = clone(flip_process, stack + size, CLONE_VM | SIGCHLD, NULL);
    } else if ((flipper = fork()) == 0) {
        flip(NULL);
    }
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    long ran = 0, denied = 0, failed = 0, killed = 0;
    double passed;
    do {
        /* vfork: the child execs out of the memory that the thread flips. */
        int is_parent = !strcmp(sharer, "parent");
        pid_t child = is_parent ? fork() : vfork();
        if (child == 0) {
            if (is_parent) signal_a_child();
            extern char **environ;
            execve((char *)shared->path, (char **)shared->words, environ);
            _exit(errno == EACCES ? 100 : 101);
        }
        int status;
        waitpid(child, &status, 0);
        if (WIFSIGNALED(status)) killed++;
        else if (WEXITSTATUS(status) == 100) denied++;
        else if (WEXITSTATUS(status) == 101) failed++;
        else ran++;
        passed = seconds_since(&start);
    } while (passed < seconds || ((!ran || !denied) && passed < PATIENCE_S));
    over = 1;
    if (flipper) kill(flipper, SIGKILL);
    fprintf(stderr, "ran %ld denied %ld failed %ld killed %ld\n", ran, denied, failed, killed);
    return 0;
}
