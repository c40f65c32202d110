/* execs HOW PROGRAM [SOURCE]: native or i386, by execve, or with "at" in HOW by execveat of
   descriptor 9. A SOURCE is mounted over PROGRAM before, in a mount namespace of its own. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "i386.h"

static int covered(const char *source, const char *target) {
    return unshare(getuid() ? CLONE_NEWNS | CLONE_NEWUSER : CLONE_NEWNS) == 0 &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount(source, target, NULL, MS_BIND, NULL) == 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    if (argc > 3 && !covered(argv[3], argv[2])) {
        puts("no mounts");
        return 0;
    }
    int is_at = strstr(argv[1], "at 9") != NULL;
    char *words[] = {argv[2], NULL}, *none[] = {NULL};
    if (!strncmp(argv[1], "native", 6)) {
        if (is_at) syscall(SYS_execveat, 9, "", words, none, AT_EMPTY_PATH);
        else execve(words[0], words, none);
    } else { /* int 0x80 sees 32 bits of each pointer, so everything lies low */
        unsigned *page = low_memory(), low = (unsigned)(unsigned long)page;
        char *text = strcpy((char *)(page + 8), words[0]);
        page[0] = (unsigned)(unsigned long)text;
        unsigned empty = low + 4 * sizeof *page;
        errno = -(is_at ? i386(358, 9, empty, low, empty, AT_EMPTY_PATH)
                        : i386(11, page[0], low, empty, 0, 0));
    }
    printf("errno %d\n", errno);
    return 0;
}
