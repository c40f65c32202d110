/* starts_children ROUNDS CHILDREN: in each round, start children that live on, then execute itself.
   Say how many could start. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char *no_variables[] = {NULL};

static int starts(char *seconds)
{
    int ends[2];
    char failed;
    char *line[] = {"sleep", seconds, NULL};
    if (pipe2(ends, O_CLOEXEC) < 0)
        exit(2);
    if (!fork()) {
        execve("/usr/bin/sleep", line, no_variables);
        write(ends[1], "x", 1);
        _exit(1);
    }
    close(ends[1]);
    int is_started = read(ends[0], &failed, 1) == 0;
    close(ends[0]);
    return is_started;
}

int main(int count, char **words)
{
    int rounds = atoi(words[1]), children = atoi(words[2]), started = count > 3 ? atoi(words[3]) : 0;
    for (int each = 0; each < children; each++)
        started += starts("1000");
    if (!rounds) {
        printf("%d\n", started);
        return 0;
    }
    char next[12], sum[12], *line[] = {words[0], next, words[2], sum, NULL};
    snprintf(next, sizeof next, "%d", rounds - 1);
    snprintf(sum, sizeof sum, "%d", started);
    execve(words[0], line, no_variables);
    return 2;
}
