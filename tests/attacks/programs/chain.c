/* A chain of processes, each the child of the one before, of whose forks nobody hears. The last
   signals itself, and becomes the program of the other arguments. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int left = atoi(argv[1]);
    while (left-- > 0) {
        pid_t child = fork();
        if (child < 0) {
            perror("fork");
            return 1;
        }
        if (child > 0) {
            int status;
            if (waitpid(child, &status, 0) != child)
                return 2;
            return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
        }
    }
    if (kill(getpid(), SIGCONT) != 0) {
        perror("kill");
        return 4;
    }
    execv(argv[2], argv + 2);
    perror("execv");
    return 5;
}
