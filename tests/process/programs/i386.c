#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <signal.h>
static long call32(long nr, long a, long b, long c) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(nr), "b"(a), "c"(b), "d"(c)
                     : "memory", "r8", "r9", "r10", "r11");
    return (int)result;
}
int main(void) {
    char *low = mmap(0, 4096, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (low == MAP_FAILED) return 77;
    if (call32(20, 0, 0, 0) != getpid()) return 78; /* getpid: no i386 ABI here */
    signal(SIGUSR1, SIG_IGN);
    printf("kill %ld\n", call32(37, getpid(), SIGUSR1, 0));
    printf("question %ld\n", call32(37, getpid(), 0, 0));
    printf("tkill %ld\n", call32(238, getpid(), SIGUSR1, 0));
    printf("tgkill %ld\n", call32(270, getpid(), getpid(), SIGUSR1));
    printf("setown %ld\n", call32(55, 0, 8, getpid()));
    printf("setown64 %ld\n", call32(221, 0, 8, getpid()));
    printf("setsig64 %ld\n", call32(221, 0, 10, SIGUSR1));
    fflush(stdout);
    strcpy(low, "/bin/echo");
    strcpy(low + 100, "by int 0x80");
    unsigned *argv = (unsigned *)(low + 200);
    argv[0] = (unsigned)(unsigned long)low;
    argv[1] = (unsigned)(unsigned long)(low + 100);
    argv[2] = 0;
    if (fork() == 0) _exit(call32(11, (long)low, (long)argv, (long)(argv + 2)) ? 9 : 8);
    int status;
    wait(&status);
    if (fork() == 0) {
        __asm__ volatile("int $0x80" : : "a"(358), "b"(-100), "c"(low), "d"(argv),
                         "S"(argv + 2), "D"(0) : "memory");
        _exit(9);
    }
    wait(&status);
    return 0;
}
