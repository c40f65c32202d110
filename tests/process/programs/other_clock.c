/* To be preloaded: the clock of the day is off by as many seconds as the file $CLOCK_OFF says. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long off_s(void)
{
    char text[32] = "";
    const char *path = getenv("CLOCK_OFF");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof(text) - 1) < 0)
        text[0] = 0;
    close(fd);
    return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *found)
{
    int failed = syscall(SYS_clock_gettime, clock, found);
    if (!failed && clock == CLOCK_REALTIME)
        found->tv_sec += off_s();
    return failed;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    found->tv_sec = now.tv_sec;
    found->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *found)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (found)
        *found = now.tv_sec;
    return now.tv_sec;
}
