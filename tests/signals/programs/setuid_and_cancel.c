#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static int ready[2];
static void *rest(void *unused) {
    if (write(ready[1], "x", 1) != 1) return unused;
    for (;;) pause();
}
static void *dies(void *unused) { return pthread_kill(pthread_self(), SIGWINCH) ? NULL : unused; }
int main(void) {
    pthread_t threads[4];
    char byte;
    if (pipe(ready)) return 1;
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, rest, NULL) || read(ready[0], &byte, 1) < 1)
            return 2;
    // Every thread gets a signal (33) that makes it change its ids as well.
    if (setgid(getgid()) || setuid(getuid()) || setreuid(getuid(), getuid())) return 3;
    for (int i = 0; i < 4; i++) {
        void *end;
        if (pthread_cancel(threads[i]) || pthread_join(threads[i], &end)) return 4;
        if (end != PTHREAD_CANCELED) return 5;
    }
    pthread_t last;
    void *end;
    if (pthread_create(&last, NULL, dies, &last) || pthread_join(last, &end) || !end) return 6;
    puts("well");
    return 0;
}
