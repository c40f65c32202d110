#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/wait.h>
static void *go(void *words) {
    execv("/bin/sh", words);
    _exit(99);
}
int main(int count, char **words) {
    char *argv[] = {"sh", "-c", "echo from a thread; exit 5", 0};
    if (count > 1 && fork() != 0) { int status; wait(&status); return WEXITSTATUS(status); }
    pthread_t thread, others[4];
    for (int i = 0; i < 4; i++) pthread_create(&others[i], 0, (void *(*)(void *))pause, 0);
    pthread_create(&thread, 0, go, argv);
    pthread_join(thread, 0);
    return 98;
}
