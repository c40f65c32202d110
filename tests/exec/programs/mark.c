/* Leaves a mark with its very first deed: its file's name and argv[1], in the file $MARK names. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    const char *path = getenv("MARK");
    char self[4096] = "", line[8192];
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return 8;
    const char *name = strrchr(self, '/') + 1;
    int length = snprintf(line, sizeof line, "%s %s\n", name, argc > 1 ? argv[1] : "");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0666) : 1;
    return write(fd, line, length) == length ? 0 : 9;
}
