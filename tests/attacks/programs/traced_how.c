/* traced_how PROGRAM: ways of tracing whoever execs PROGRAM. Prints for each what came of it: an
   errno of ptrace, or how the exec ended. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "i386.h"

static const char *program;
static int may_go[2];

static void ended(const char *how, int status) {
    if (WIFSIGNALED(status)) printf("%s: signal %d\n", how, WTERMSIG(status));
    else if (WEXITSTATUS(status)) printf("%s: errno %d\n", how, WEXITSTATUS(status));
    else printf("%s: ran\n", how);
    fflush(stdout);
}

static void asked(const char *how, long result) {
    printf("%s: errno %d\n", how, result ? errno : 0);
    fflush(stdout);
}

static void run(void) {
    char *words[] = {"first", "x", NULL};
    execv(program, words);
    _exit(errno);
}

static void *wait_for_ever(void *unused) {
    pause();
    return unused;
}

static pid_t child(int asks, int blocks, int makes_a_thread) {
    char byte;
    pipe(may_go);
    pid_t pid = fork();
    if (pid) return pid;
    if (asks) ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    else read(may_go[0], &byte, 1);
    sigset_t trap;
    sigemptyset(&trap), sigaddset(&trap, SIGTRAP);
    if (blocks) sigprocmask(SIG_BLOCK, &trap, NULL);
    pthread_t thread;
    if (makes_a_thread) pthread_create(&thread, NULL, wait_for_ever, NULL);
    run();
    return 0;
}

static int last(pid_t pid) {
    int status;
    for (;;) {
        pid_t found = waitpid(-1, &status, __WALL);
        if (found < 0) return 0;
        if (WIFSTOPPED(status)) {
            int number = WSTOPSIG(status) == SIGTRAP || status >> 16 ? 0 : WSTOPSIG(status);
            ptrace(PTRACE_CONT, found, NULL, number);
        } else if (found == pid) {
            return status;
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    program = argv[1];
    int status;
    pid_t pid = child(1, 0, 0);
    ended("asked for", last(pid));

    pid = child(1, 1, 0);
    ended("blocked", last(pid));

    /* Its older way, without the option: the kernel sends a SIGTRAP. */
    pid = child(0, 0, 0);
    ptrace(PTRACE_ATTACH, pid, NULL, NULL);
    waitpid(pid, &status, 0);
    asked("attached without a stop", ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD));
    ptrace(PTRACE_CONT, pid, NULL, NULL);
    write(may_go[1], "", 1);
    ended("attached", last(pid));

    pid = child(0, 0, 0);
    asked("seized", ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACEEXEC));
    int result = i386(26, PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXEC, 0);
    errno = -result;
    asked("seized as i386", result);
    write(may_go[1], "", 1);
    ended("not seized", last(pid));

    pid = child(0, 0, 1);
    ptrace(PTRACE_ATTACH, pid, NULL, NULL);
    waitpid(pid, &status, __WALL);
    ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACECLONE);
    ptrace(PTRACE_CONT, pid, NULL, NULL);
    write(may_go[1], "", 1);
    ended("with threads", last(pid));

    pid_t tracer = fork();
    if (tracer == 0) {
        raise(SIGSTOP);
        pid = child(1, 0, 0);
        ended("tracer traced", last(pid));
        _exit(0);
    }
    waitpid(tracer, &status, WUNTRACED);
    ptrace(PTRACE_ATTACH, tracer, NULL, NULL);
    kill(tracer, SIGCONT);
    last(tracer);
    return 0;
}
