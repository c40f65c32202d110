// A parent that gets SIGCHLD by a handler without SA_RESTART, and ends its children.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 15
#define CHILDREN 4

static volatile sig_atomic_t handled;
static char **to_execute;

static void handle(int unused) {
    (void)unused;
    handled = 1;
}

static pid_t child_that(void (*takes_it)(int)) {
    int ready[2];
    if (pipe(ready)) exit(1);
    pid_t child = fork();
    if (child) {
        char byte;
        close(ready[1]);
        if (read(ready[0], &byte, 1) != 1) exit(1);
        close(ready[0]);
        return child;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGTERM, takes_it);
    if (write(ready[1], "r", 1) != 1) _exit(1);
    for (;;) pause();
}

static int broken_off(long result) { return result < 0 && errno == EINTR; }

static int end_many(const char *how) {
    int count = 0;
    for (int round = 0; round < ROUNDS; round++) {
        pid_t children[CHILDREN];
        int pidfds[CHILDREN];
        for (int i = 0; i < CHILDREN; i++) {
            children[i] = child_that(SIG_DFL);
            pidfds[i] = syscall(SYS_pidfd_open, children[i], 0);
        }
        for (int i = 0; i < CHILDREN; i++) {
            if (!strcmp(how, "pidfd"))
                count += broken_off(syscall(SYS_pidfd_send_signal, pidfds[i], SIGTERM, NULL, 0));
            else if (!strcmp(how, "stop")) {
                count += broken_off(kill(children[i], SIGSTOP));
                count += broken_off(kill(children[i], SIGCONT));
                count += broken_off(kill(children[i], SIGKILL));
            } else
                count += broken_off(kill(children[i], SIGTERM));
        }
        for (int i = 0; i < CHILDREN; i++) {
            kill(children[i], SIGKILL);
            while (waitpid(children[i], NULL, 0) < 0 && errno == EINTR) {}
            close(pidfds[i]);
        }
    }
    return printf("%d %d\n", count, handled) < 0;
}

static int wait_long(void) {
    struct epoll_event event;
    int result = epoll_wait(epoll_create1(0), &event, 1, 1500);
    return printf("%d %d\n", result, result ? errno : 0) < 0;
}

static void *execute(void *unused) {
    (void)unused;
    execv(to_execute[0], to_execute);
    return NULL;
}

static int execute_in_a_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, execute, NULL);
    pthread_join(thread, NULL);
    return 1;
}

static int be_traced(void) {
    pid_t parent = getpid();
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    pid_t tracer = fork();
    if (!tracer) {
        long done = ptrace(PTRACE_SEIZE, parent, 0, PTRACE_O_TRACEEXEC);
        _exit(done ? errno : 0);
    }
    int status;
    while (waitpid(tracer, &status, 0) < 0 && errno == EINTR) {}
    return printf("%d\n", WEXITSTATUS(status)) < 0;
}

int main(int count, char **words) {
    (void)count;
    struct sigaction action = {.sa_handler = handle};
    const char *how = words[1];
    to_execute = words + 2;
    setvbuf(stdout, NULL, _IONBF, 0);
    sigaction(SIGCHLD, &action, NULL);
    if (!strcmp(how, "kill") || !strcmp(how, "pidfd") || !strcmp(how, "stop")) return end_many(how);
    kill(child_that(SIG_IGN), SIGTERM);
    if (!strcmp(how, "waits")) return wait_long();
    if (!strcmp(how, "traced")) return be_traced();
    if (!strcmp(how, "executes")) execute(NULL);
    return execute_in_a_thread();
}
