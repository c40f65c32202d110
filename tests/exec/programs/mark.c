/* Says which file it is and its argv[1], with its very first deed. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    char self[4096] = "";
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return 8;
    return dprintf(1, "%s %s\n", strrchr(self, '/') + 1, argc > 1 ? argv[1] : "") < 0;
}
