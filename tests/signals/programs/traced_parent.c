// A parent that handles SIGCHLD has ended a child: sigwrap traces it for a while. What it waits in,
// what it asks the kernel for meanwhile, and who else wants to trace it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "i386.h"

#define LONG_S 60
#define SIGNALS 200
#define ATTACHED 10
#define CALLS 1000
#define TRACED_FOR_MS 800  // and somewhat longer, after each call
#define BEYOND_32_BITS 0x1fffffffcL  // its lower half is -EINTR

static volatile sig_atomic_t alarms;
static pid_t parent;
static int ends[2];

static void handle(int number) {
    if (number == SIGALRM) alarms++;
}

static pid_t child_that_waits(void) {
    pid_t child = fork();
    if (child) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
}

static void end(pid_t child) {
    while (kill(child, SIGKILL) < 0 && errno == EINTR) {}
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
}

static int tracer(void) {
    char path[64], line[256];
    int found = -1;
    snprintf(path, sizeof path, "/proc/%d/status", parent);
    FILE *status = fopen(path, "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "TracerPid: %d", &found);
    if (status) fclose(status);
    return found;
}

static int waits_in(const char *call) {
    char path[64], number[8] = "";
    snprintf(path, sizeof path, "/proc/%d/syscall", parent);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    if (!fgets(number, sizeof number, file)) number[0] = 0;
    fclose(file);
    return !strncmp(number, call, strlen(call));
}

// From a child: what the parent waits for comes when it waits untraced.
static void release_once_untraced(const char *call) {
    if (fork()) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct timespec moment = {.tv_nsec = 1000000};
    while (!waits_in(call) || tracer()) nanosleep(&moment, NULL);
    kill(parent, SIGWINCH);  // ignored
    kill(parent, SIGUSR1);
    if (write(ends[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
}

static int wait_in(const char *call) {
    struct epoll_event event = {.events = EPOLLIN};
    struct timeval timeout = {.tv_sec = LONG_S};
    struct timespec same = {.tv_sec = LONG_S};
    char byte;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 1;
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    int epoll = epoll_create1(0), result;
    epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
    end(child_that_waits());
    if (!strcmp(call, "epoll_wait")) {
        release_once_untraced("232 ");
        result = epoll_wait(epoll, &event, 1, LONG_S * 1000);
    } else if (!strcmp(call, "forever")) {
        release_once_untraced("232 ");
        result = epoll_wait(epoll, &event, 1, -1);
    } else if (!strcmp(call, "recv")) {
        release_once_untraced("45 ");
        result = recv(ends[0], &byte, 1, 0);
    } else {
        release_once_untraced("128 ");
        result = sigtimedwait(&set, NULL, &same) == SIGUSR1;
    }
    return printf("%d %d\n", result, result < 0 ? errno : 0) < 0;
}

static void start_alarms(void) {
    struct itimerval often = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &often, NULL);
}

static int seek(void) {
    int fd = memfd_create("sparse", 0), wrong = 0;
    end(child_that_waits());
    start_alarms();
    while (alarms < SIGNALS) {
        wrong += lseek(fd, BEYOND_32_BITS, SEEK_SET) != BEYOND_32_BITS;
        lseek(fd, BEYOND_32_BITS - 1, SEEK_SET);
        wrong += lseek(fd, 1, SEEK_CUR) != BEYOND_32_BITS;
    }
    return printf("%d\n", wrong) < 0;
}

static long kill_by_i386(long pid, long number) {
    return i386(37, pid, number, 0, 0, 0);
}

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int call_by_i386(void) {
    struct sigaction breaks_off = {.sa_handler = handle};
    int broken_off = 0;
    pid_t child = child_that_waits();
    kill_by_i386(child, SIGCONT);
    sigaction(SIGALRM, &breaks_off, NULL);
    start_alarms();
    for (long i = 0, last_ms = now_ms(); i < CALLS; i++) {
        int is_broken_off = kill_by_i386(child, SIGCONT) == -EINTR;
        long this_ms = now_ms();
        broken_off += is_broken_off && this_ms - last_ms < TRACED_FOR_MS;
        last_ms = this_ms;
    }
    return printf("%d\n", broken_off) < 0;
}

static int be_attached_while_ending(void) {
    int attached = 0;
    for (int i = 0; i < ATTACHED; i++) {
        int ready[2];
        char byte;
        if (pipe(ready)) return 1;
        pid_t busy = fork();
        if (!busy) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (int round = 0;; round++) {
                end(child_that_waits());
                if (round == 1 && write(ready[1], "r", 1) != 1) _exit(1);
            }
        }
        if (read(ready[0], &byte, 1) != 1) return 1;
        attached += !ptrace(PTRACE_ATTACH, busy, 0, 0);
        kill(busy, SIGKILL);
        int status;
        do waitpid(busy, &status, __WALL);
        while (WIFSTOPPED(status));
    }
    return printf("%d\n", attached) < 0;
}

int main(int count, char **words) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    const char *how = count > 1 ? words[1] : "";
    parent = getpid();
    setvbuf(stdout, NULL, _IONBF, 0);
    sigaction(SIGCHLD, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    if (!strcmp(how, "seeks")) return seek();
    if (!strcmp(how, "i386")) return call_by_i386();
    if (!strcmp(how, "attached")) return be_attached_while_ending();
    return wait_in(how);
}
