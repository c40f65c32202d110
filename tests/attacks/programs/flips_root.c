/* flips_root EVIL PROGRAM ROUNDS: children exec PROGRAM while a thread of theirs, with which they
   share their root, makes EVIL that and takes it back, again and again. The file `stat` here gets
   what /proc says of this one. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *evil;
static int ours;

static void *flip(void *nothing)
{
    for (;;) {
        if (chroot(evil) || fchdir(ours) || chroot("."))
            _exit(3);
    }
    return nothing;
}

static void note_where_it_is(void)
{
    char text[4096];
    int from = open("/proc/self/stat", O_RDONLY);
    int to = open("stat", O_WRONLY | O_CREAT, 0644);
    if (write(to, text, read(from, text, sizeof text)) < 0)
        _exit(5);
    close(from);
    close(to);
}

int main(int count, char **words)
{
    note_where_it_is();
    evil = words[1];
    ours = open("/", O_PATH | O_CLOEXEC);
    if (count < 4 || chdir("/"))
        return 2;
    for (int round = 0; round < atoi(words[3]); round++) {
        int pid = fork();
        if (pid == 0) {
            char *line[] = {words[2], NULL};
            pthread_t thread;
            if (round > 3) /* before, it comes to be known */
                pthread_create(&thread, NULL, flip, NULL);
            execv(words[2], line);
            _exit(4);
        }
        waitpid(pid, NULL, 0);
    }
    return 0;
}
