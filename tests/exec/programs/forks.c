/* New processes by every way there is. Says what it did on standard output; children that stay wait
   for the end of standard input. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "i386.h"

#define SLOW_S 15 /* may the machine be */

static void stay(void)
{
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
    _exit(0);
}

static long by_int80(long number, long argument)
{
    int result = i386(number, argument, 0, 0, 0, 0);
    if (result < 0) {
        errno = -result;
        return -1;
    }
    return result;
}

static long forked(const char *way)
{
    struct clone_args args = {.exit_signal = SIGCHLD};
#ifdef SYS_fork
    if (!strcmp(way, "fork"))
        return syscall(SYS_fork);
#endif
    if (!strcmp(way, "clone"))
        return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (!strcmp(way, "beside")) /* a child of our parent */
        return syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
    if (!strcmp(way, "clone3"))
        return syscall(SYS_clone3, &args, sizeof args);
    if (!strcmp(way, "fork32"))
        return by_int80(2, 0);
    if (!strcmp(way, "clone32"))
        return by_int80(120, SIGCHLD);
    if (!strcmp(way, "clone3-32"))
        return by_int80(435, 0);
    abort();
}

static void fill(const char *way, int count)
{
    int made = 0;
    long child = 0;
    while (made < count && (child = forked(way)) >= 0) {
        if (child == 0)
            stay();
        made++;
    }
    printf("%d %s\n", made, child < 0 ? strerrorname_np(errno) : "");
    stay();
}

/* All at once, until some seconds are over and one was refused: `way` again, and `ends` says whether
   the children end (and wait to be reaped) or go on like their parent. Says how many there were,
   COMMAND with them; of those that don't end, all are there at the same time. */
static void bomb(const char *way, const char *ends, int seconds)
{
    struct {
        int made, refused;
        time_t end;
    } *all = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t first = getpid();
    time_t enough = time(0) + seconds, not_yet = 0;
    struct timespec a_moment = {.tv_nsec = 10 * 1000 * 1000};
    if (all == MAP_FAILED)
        abort();
    all->made = 1;
    puts("begun");
    while (!__atomic_load_n(&all->end, __ATOMIC_SEQ_CST)) {
        long child = forked(way);
        if (child == 0) {
            __atomic_add_fetch(&all->made, 1, __ATOMIC_SEQ_CST);
            if (!strcmp(ends, "ends"))
                _exit(0);
        }
        if (child < 0)
            __atomic_store_n(&all->refused, 1, __ATOMIC_SEQ_CST);
        if (time(0) >= enough + (all->refused ? 0 : SLOW_S))
            __atomic_compare_exchange_n(&all->end, &not_yet, time(0) + 1, 0, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST);
    }
    while (time(0) <= all->end) /* who ended now would make room */
        nanosleep(&a_moment, 0);
    if (getpid() == first)
        printf("%d\n", all->made);
    _exit(0);
}

/* Children of posix_spawn and vfork, one after the other. */
static void spawn(int count)
{
    char *words[] = {"true", NULL}, *nothing[] = {NULL};
    int status, good = 0;
    pid_t child;
    for (int made = 0; made < count; made++) {
        if (posix_spawn(&child, "/bin/true", 0, 0, words, nothing) == 0)
            good += waitpid(child, &status, 0) == child && status == 0;
        child = vfork();
        if (child == 0)
            _exit(0);
        good += child > 0 && waitpid(child, &status, 0) == child && status == 0;
    }
    printf("%d\n", good);
}

static void *idle(void *nothing)
{
    pause();
    return nothing;
}

static void threads(int count)
{
    pthread_t thread;
    int made = 0;
    while (made < count && pthread_create(&thread, 0, idle, 0) == 0)
        made++;
    printf("%d\n", made);
    exit(0);
}

/* The end of whoever holds the other end. */
static void await_end(int *ends)
{
    char byte;
    close(ends[1]);
    while (read(ends[0], &byte, 1) > 0)
        ;
    close(ends[0]);
}

/* A double fork, and its last one runs this program again with one generation less to go: so each
   generation is two deeper. `way` says how the children come to be, and whether we stay until all
   is over or end along with the one in between. */
static void descend(const char *way, const char *stays, int left, char **words)
{
    int all_over[2], in_between_is_gone[2];
    char number[16];
    if (left == 0) {
        execl("/bin/true", "true", NULL);
        _exit(1);
    }
    if (pipe(all_over) || pipe(in_between_is_gone))
        abort();
    if (forked(way) == 0) {
        setsid();
        if (forked(way) == 0) {
            await_end(in_between_is_gone);
            snprintf(number, sizeof number, "%d", left - 1);
            words[4] = number;
            execv("/proc/self/exe", words);
            _exit(1);
        }
        _exit(0);
    }
    if (!strcmp(stays, "stays"))
        close(in_between_is_gone[1]), await_end(all_over);
}

int main(int count, char **words)
{
    const char *what = words[1];
    setvbuf(stdout, 0, _IOLBF, 0);
    if (!strcmp(what, "fill"))
        fill(words[2], atoi(words[3]));
    if (!strcmp(what, "bomb")) {
        if (count > 5) { /* asked to end, it doesn't */
            signal(SIGINT, SIG_IGN);
            signal(SIGTERM, SIG_IGN);
        }
        bomb(words[2], words[3], atoi(words[4]));
    }
    if (!strcmp(what, "spawn"))
        spawn(atoi(words[2]));
    if (!strcmp(what, "churn")) { /* so many lines, in each of which everyone makes one and ends */
        time_t end = time(0) + 8;
        signal(SIGTERM, SIG_IGN);
        for (int line = 0; line < atoi(words[2]); line++)
            if (fork() == 0)
                while (time(0) < end)
                    if (fork() > 0)
                        _exit(0);
        puts("begun");
        while (time(0) < end)
            pause();
    }
    if (!strcmp(what, "threads"))
        threads(atoi(words[2]));
    if (!strcmp(what, "descend"))
        descend(words[2], words[3], atoi(words[4]), words);
    return count < 2;
}
