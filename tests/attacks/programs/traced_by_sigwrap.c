/* traced_by_sigwrap WHO GOOD BAD: the command or an orphan of it makes its parent, the supervisor, its
   tracer, and then tries for a second to execute what another thread flips. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <time.h>
#include <unistd.h>

static char path[1024];
static const char *good, *bad;

static void *flip(void *unused) {
    for (;;) strcpy(path, good), strcpy(path, bad);
    return unused;
}

static void try_for_a_second(void) {
    pthread_t thread;
    char *words[] = {"first", "pull", NULL}, *none[] = {NULL};
    strcpy(path, good);
    pthread_create(&thread, NULL, flip, NULL);
    for (time_t end = time(NULL) + 2; time(NULL) < end;) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL)) return;
        execve(path, words, none);
        raise(SIGWINCH); /* sigwrap lets it go */
    }
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int gone[2];
    char byte;
    pid_t command = getpid();
    good = argv[2], bad = argv[3];
    pipe(gone);
    if (!strcmp(argv[1], "orphan") && fork() == 0) {
        if (fork()) _exit(0);
        while (getppid() == command) usleep(100);
        try_for_a_second();
        write(gone[1], "x", 1);
        _exit(0);
    }
    if (strcmp(argv[1], "orphan")) return try_for_a_second(), 0;
    read(gone[0], &byte, 1);
    return 0;
}
