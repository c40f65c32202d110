/* Processes that lose their ancestors, and then run `true`. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GO = 10, GONE, READY, OVER, OTHER_END = 10 };

static void open_pipe(int number)
{
    int ends[2];
    if (pipe(ends) || dup2(ends[0], number) < 0 || dup2(ends[1], number + OTHER_END) < 0)
        abort();
    close(ends[0]);
    close(ends[1]);
}

/* For a byte, or until nobody holds the other end any more. */
static void await(int number)
{
    char byte;
    if (read(number, &byte, 1) < 0)
        abort();
}

static void run(const char *program, const char *name)
{
    execl(program, name, NULL);
    _exit(1);
}

/* The child that stays when its ancestors, who hold the other end of GONE, are no more. */
static void orphan(void)
{
    setsid();
    prctl(PR_SET_PDEATHSIG, 0);
    close(GONE + OTHER_END);
    if (write(READY + OTHER_END, "", 1) != 1)
        abort();
    await(GONE);
    run("/bin/true", "true");
}

/* `left` more below this one, by a fork each, and by an exec where `how` says so. They end by
   themselves, all together, or are killed, each by the end of the one above. */
static void ancestor(const char *how, const char *end, int left, int is_first)
{
    char number[16];
    int is_killed;
    for (;;) {
        is_killed = !strcmp(end, "killed") && !is_first;
        if (is_killed)
            prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (fork() > 0)
            break;
        if (left-- == 0)
            orphan();
        if (!strcmp(how, "execs")) {
            snprintf(number, sizeof number, "%d", left);
            execl("/proc/self/exe", "orphans", how, end, number, "below", NULL);
            _exit(1);
        }
        is_first = 0;
    }
    while (is_killed)
        pause();
    await(GO);
    _exit(0);
}

static void again(const char *how, int left)
{
    char number[] = {'0' + left, 0};
    execl("/proc/self/exe", "orphans", how, number, NULL);
    _exit(1);
}

/* By a signal, while nobody may look at it: that is when it gets its place. */
static void be_seen_hidden(void)
{
    kill(getpid(), SIGWINCH);
    prctl(PR_SET_DUMPABLE, 1);
}

/* Nine generations, each a double fork and an exec below the one before. All are orphans of the
   first one, which tries to look like each of them: they hide their images, or have the same. */
static void generation(const char *how, int left)
{
    int is_hidden = !strcmp(how, "hidden"), status;
    if (left == 9) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        prctl(PR_SET_DUMPABLE, !is_hidden);
    } else {
        prctl(PR_SET_DUMPABLE, !is_hidden);
        if (fork() > 0)
            return;
    }
    pid_t child, parent = getpid();
    if (fork() == 0) {
        while (left < 9 && getppid() == parent)
            sched_yield();
        if (is_hidden)
            be_seen_hidden();
        if (!strcmp(how, "traced"))
            ptrace(PTRACE_TRACEME, 0, 0, 0);
        if (left == 0)
            run("/bin/true", "true");
        again(how, left - 1);
    }
    while (left == 9 && (child = wait(&status)) > 0)
        if (WIFSTOPPED(status)) /* at its exec */
            ptrace(PTRACE_DETACH, child, 0, 0);
}

int main(int count, char **words)
{
    if (count == 3) {
        if (strcmp(words[1], "hidden") && !(personality(-1) & ADDR_NO_RANDOMIZE) &&
            personality(ADDR_NO_RANDOMIZE) >= 0)
            again(words[1], atoi(words[2]));
        generation(words[1], atoi(words[2]));
        return 0;
    }
    if (count == 5)
        ancestor(words[1], words[2], atoi(words[3]), 0);
    for (int number = GO; number <= OVER; number++)
        open_pipe(number);
    if (fork() == 0) {
        close(GO + OTHER_END);
        ancestor(words[1], words[2], atoi(words[3]), 1);
    }
    close(GONE + OTHER_END);
    close(OVER + OTHER_END);
    await(READY);
    close(GO + OTHER_END);
    await(OVER);
    return 0;
}
