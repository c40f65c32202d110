/* As the `env` of a script's first line: env PROGRAM SCRIPT [WORD...]. It runs PROGRAM, which it
   looks for in the folder it is in, after it has done what $STRAY says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv) {
    const char *stray = getenv("STRAY");
    char path[4096];
    snprintf(path, sizeof path, "./%s", argv[1]);
    if (!strcmp(stray, "words")) argv[argc - 1] = "other";
    if (!strcmp(stray, "name")) snprintf(path, sizeof path, "./link");
    if (!strcmp(stray, "file")) snprintf(path, sizeof path, "sub/%s", argv[1]);
    if (!strcmp(stray, "interpreter") && rename("sub/ok", "ok")) return 1;
    if (!strcmp(stray, "script") && rename("sub/job", "job")) return 1;
    if (!strcmp(stray, "rewritten script")) {
        FILE *file = fopen("job", "a");
        fputs("# more\n", file);
        fclose(file);
    }
    if (!strcmp(stray, "variable")) setenv("NODE_OPTIONS", "--require ./x", 1);
    if (!strcmp(stray, "fewer variables")) unsetenv("HOME");
    if (!strcmp(stray, "folder")) {
        if (chdir("sub")) return 1;
        snprintf(path, sizeof path, "../%s", argv[1]);
    }
    if (!strcmp(stray, "exec between")) execv("./garbage", (char *[]){"garbage", NULL});
    if (!strcmp(stray, "child") && fork()) return wait(NULL) < 0;
    execve(path, argv + 1, environ);
    return 9;
}
