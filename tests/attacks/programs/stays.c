/* stays [WORD]: ends at once, but for where its file is called "bad" or WORD is "push": then it says
   so and never ends. */
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

int main(int argc, char **argv) {
    const char *path = (const char *)getauxval(AT_EXECFN);
    if (!strstr(path, "/bad") && (argc < 2 || strcmp(argv[1], "push"))) return 0;
    puts("ran");
    fflush(stdout);
    for (;;) pause();
}
