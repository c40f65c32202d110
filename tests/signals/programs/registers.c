// PTRACE_SEIZE that asks for no stop after execs: which register it changes, by both ABIs.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEIZE 0x4206L

static volatile sig_atomic_t handled;

static void handle(int unused) {
    (void)unused;
    handled++;
}

static long seize(pid_t pid, long *options) {
    long result;
#ifdef __x86_64__
    register long fourth __asm__("r10") = *options;
    __asm__ volatile("syscall"
                     : "=a"(result), "+r"(fourth)
                     : "a"(101L), "D"(SEIZE), "S"((long)pid), "d"(0L)
                     : "rcx", "r11", "memory");
#else
    register long fourth __asm__("x3") = *options;
    register long number __asm__("x8") = 117;
    register long first __asm__("x0") = SEIZE;
    register long second __asm__("x1") = pid;
    register long third __asm__("x2") = 0;
    __asm__ volatile("svc #0"
                     : "+r"(first), "+r"(fourth)
                     : "r"(number), "r"(second), "r"(third)
                     : "memory");
    result = first;
#endif
    *options = fourth;
    return result;
}

static long seize_by_i386(pid_t pid, long *options) {
    long result;
#ifdef __x86_64__
    __asm__ volatile("int $0x80"
                     : "=a"(result), "+S"(*options)
                     : "a"(26L), "b"(SEIZE), "c"((long)pid), "d"(0L)
                     : "r8", "r9", "r10", "r11", "memory");
#else
    result = -ENOSYS;
#endif
    return result;
}

static void try_it(long (*call)(pid_t, long *)) {
    struct sigaction action = {.sa_handler = handle};
    long options = 2;  // PTRACE_O_TRACEFORK
    pid_t child = fork();
    if (!child)
        for (;;) pause();
    sigaction(SIGUSR1, &action, NULL);
    kill(getpid(), SIGUSR1);
    long result = call(child, &options);
    printf("%d %ld\n", (int)result, options);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    try_it(seize);
    try_it(seize_by_i386);
    return handled != 2;
}
