/* As the `env` of a script's first line: env PROGRAM SCRIPT [WORD...]. It runs PROGRAM, which it
   looks for in the folder it is in, after it has done what $STRAY says. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The folder of the same path and inode in another process's mount namespace, where sub/job is this
   job. Empty where there may be none. */
static const char *the_same_elsewhere(void) {
    static char path[64];
    int ends[2];
    char done;
    if (pipe(ends)) return "";
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS)) _exit(1);
        if (mount("job", "sub/job", NULL, MS_BIND, NULL)) _exit(1);
        if (write(ends[1], "!", 1) != 1) _exit(1);
        pause();
    }
    close(ends[1]);
    snprintf(path, sizeof path, "/proc/%d/cwd", child);
    return read(ends[0], &done, 1) == 1 ? path : "";
}

int main(int argc, char **argv) {
    const char *stray = getenv("STRAY");
    char path[4096];
    snprintf(path, sizeof path, "./%s", argv[1]);
    if (!strcmp(stray, "words")) argv[argc - 1] = "other";
    if (!strcmp(stray, "file")) snprintf(path, sizeof path, "sub/%s", argv[1]);
    if (!strcmp(stray, "interpreter") && rename("sub/ok", "ok")) return 1;
    if (!strcmp(stray, "script") && rename("sub/job", "job")) return 1;
    if (!strcmp(stray, "rewritten script")) {
        FILE *file = fopen("job", "a");
        fputs("# more\n", file);
        fclose(file);
    }
    if (!strcmp(stray, "variable")) setenv("NODE_OPTIONS", "--require ./x", 1);
    if (!strcmp(stray, "folder")) {
        if (chdir("sub")) return 1;
        snprintf(path, sizeof path, "../%s", argv[1]);
    }
    if (!strcmp(stray, "namespace")) {
        char folder[2048];
        snprintf(path, sizeof path, "%s/%s", getcwd(folder, sizeof folder), argv[1]);
        if (chdir(the_same_elsewhere())) return 1;
    }
    if (!strcmp(stray, "mount")) {
        char folder[128];
        snprintf(folder, sizeof folder, "%s/sub", the_same_elsewhere());
        if (unlink("here") || symlink(folder, "here")) return 1;
    }
    if (!strcmp(stray, "exec between")) execv("./garbage", (char *[]){"garbage", NULL});
    if (!strcmp(stray, "child") && fork()) return wait(NULL) < 0;
    execve(path, argv + 1, environ);
    return 9;
}
