/* race MODE SECONDS ALLOWED DENIED: execs a path that something flips between the two, all the
   while. Modes: thread, process (shares memory), file (a mapped file that another process writes),
   argument (the flipped string is argv[1], the program stays ALLOWED). Prints how many execs ran. */
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char *shared;
static const char *first, *second;
static volatile int over;

static void *flip(void *unused) {
    (void)unused;
    while (!over) {
        strcpy(shared, first);
        for (volatile int i = 0; i < rand() % 3000; i++) {}
        strcpy(shared, second);
        for (volatile int i = 0; i < rand() % 3000; i++) {}
    }
    return NULL;
}

static int flip_process(void *unused) {
    flip(unused);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    const char *mode = argv[1];
    double seconds = atof(argv[2]);
    int arguments = strstr(mode, "argument") != NULL;
    first = arguments ? "allowed-word" : argv[3];
    second = arguments ? "denied-word!" : argv[4];
    char name[] = "/tmp/race-XXXXXX";
    int fd = mkstemp(name);
    unlink(name);
    if (ftruncate(fd, 4096) < 0) return 2;
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    strcpy(shared, first);
    pid_t flipper = 0;
    pthread_t thread;
    if (strstr(mode, "thread")) {
        pthread_create(&thread, NULL, flip, NULL);
    } else if (strstr(mode, "process")) {
        char *stack = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        flipper = clone(flip_process, stack + (1 << 16), CLONE_VM | SIGCHLD, NULL);
    } else if ((flipper = fork()) == 0) {
        flip(NULL);
    }
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    long ran = 0, refused = 0, killed = 0;
    do {
        /* vfork: the child execs out of the memory that the thread flips. */
        pid_t child = vfork();
        if (child == 0) {
            char *words[] = {"mark", arguments ? shared : (char *)"x", NULL};
            extern char **environ;
            execve(arguments ? argv[3] : shared, words, environ);
            _exit(errno == EACCES ? 100 : 101);
        }
        int status;
        waitpid(child, &status, 0);
        if (WIFSIGNALED(status)) killed++;
        else if (WEXITSTATUS(status) >= 100) refused++;
        else ran++;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) + (now.tv_nsec - start.tv_nsec) / 1e9 < seconds);
    over = 1;
    if (flipper) kill(flipper, SIGKILL);
    printf("ran %ld refused %ld killed %ld\n", ran, refused, killed);
    return 0;
}
