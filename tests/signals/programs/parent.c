// A parent that gets SIGCHLD by a handler, with SA_RESTART if a third word says so, and ends its
// children.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
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

static int end_many(const char *how, int number) {
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
                count += broken_off(kill(children[i], number));
        }
        for (int i = 0; i < CHILDREN; i++) {
            while (broken_off(kill(children[i], number))) {}
            while (waitpid(children[i], NULL, 0) < 0 && errno == EINTR) {}
            close(pidfds[i]);
        }
    }
    return printf("%d %d\n", count, handled) < 0;
}

static int wait_for(int fd, int ms) {
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(0);
    if (fd >= 0) epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    int result = epoll_wait(epoll, &event, 1, ms);
    return printf("%d %d\n", result, result < 0 ? errno : 0) < 0;
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

static void await_epoll_wait(pid_t pid) {
    char path[64], number[4] = "";
    snprintf(path, sizeof path, "/proc/%d/syscall", pid);
    while (strcmp(number, "232")) {
        FILE *call = fopen(path, "r");
        if (!call || !fgets(number, sizeof number, call)) exit(1);
        fclose(call);
    }
}

static int be_sent_what_it_ignores(void) {
    pid_t parent = getpid();
    if (!fork()) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        await_epoll_wait(parent);
        kill(parent, SIGWINCH);
        for (;;) pause();
    }
    return wait_for(-1, 100);
}

static int execute_after_a_thread_failed(void) {
    pthread_t thread;
    char *rest[] = {to_execute[0], NULL}, **last = to_execute + 1;
    to_execute = rest;
    pthread_create(&thread, NULL, execute, NULL);
    pthread_join(thread, NULL);
    execv(last[0], last);
    return 1;
}

static int be_traced(void) {
    pid_t parent = getpid();
    int attached[2];
    char byte;
    if (pipe(attached)) return 1;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (!fork()) {
        await_epoll_wait(parent);
        if (ptrace(PTRACE_ATTACH, parent, 0, 0)) return printf("%d ", errno);
        if (waitpid(parent, NULL, __WALL) != parent) return 1;
        ptrace(PTRACE_DETACH, parent, 0, 0);
        return write(attached[1], "a", 1) != 1;
    }
    wait_for(-1, 1000);  // attaching breaks it off
    return read(attached[0], &byte, 1) != 1;
}

static int trace(void) {
    pid_t tracer = getpid();
    int executed[2];  // the exec closes it
    if (pipe2(executed, O_CLOEXEC)) return 1;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    signal(SIGCHLD, SIG_DFL);
    pid_t child = fork();
    if (!child) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        await_epoll_wait(tracer);
        execute(NULL);
        _exit(1);
    }
    close(executed[1]);
    int status = wait_for(executed[0], -1);
    for (;;) {
        if (waitpid(child, &status, 0) < 0 || WIFEXITED(status)) return WEXITSTATUS(status);
        ptrace(PTRACE_CONT, child, NULL, NULL);
    }
}

int main(int count, char **words) {
    struct sigaction action = {.sa_handler = handle};
    const char *how = words[1];
    to_execute = words + 2;
    if (count > 3 && !strcmp(words[3], "restarts")) action.sa_flags = SA_RESTART;
    setvbuf(stdout, NULL, _IONBF, 0);
    sigaction(SIGCHLD, &action, NULL);
    if (!strcmp(how, "kill") || !strcmp(how, "pidfd") || !strcmp(how, "stop"))
        return end_many(how, count > 2 ? atoi(words[2]) : SIGTERM);
    if (!strcmp(how, "traces")) return trace();
    kill(child_that(SIG_IGN), SIGTERM);
    if (!strcmp(how, "waits")) return wait_for(-1, 1200);
    if (!strcmp(how, "traced")) return be_traced();
    if (!strcmp(how, "ignores")) return be_sent_what_it_ignores();
    if (!strcmp(how, "executes at last")) return execute_after_a_thread_failed();
    if (!strcmp(how, "executes")) execute(NULL);
    return execute_in_a_thread();
}
