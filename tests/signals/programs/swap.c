// Races that must be lost. One thread changes what the call names while the supervisor decides.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLOT 100
#define FIOSETOWN_ 0x8901

static atomic_int over;
static int mine_fd, other_fd;
static pid_t mine, other;
static volatile struct f_owner_ex owner;
static volatile int word;

// It yields after either, since a busy machine takes the processor away where it yields.
static void *swap_descriptor(void *unused) {
    (void)unused;
    while (!over) {
        dup2(mine_fd, SLOT);
        sched_yield();
        dup2(other_fd, SLOT);
        sched_yield();
    }
    return NULL;
}

static void *flip_memory(void *unused) {
    (void)unused;
    while (!over) {
        owner.pid = word = mine;
        sched_yield();
        owner.pid = word = other;
        sched_yield();
    }
    return NULL;
}

// attack pidfd|setown_ex|ioctl ROUNDS SECONDS MINE OTHER: prints how often it was let, refused, and wrong.
int main(int count, char **words) {
    if (count != 6) return 2;
    int rounds = atoi(words[2]), enough = atoi(words[3]), let = 0, refused = 0, wrong = 0;
    mine = atoi(words[4]);
    other = atoi(words[5]);
    int by_pidfd = !strcmp(words[1], "pidfd"), by_ioctl = !strcmp(words[1], "ioctl");
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets)) return 3;
    mine_fd = syscall(SYS_pidfd_open, mine, 0);
    other_fd = syscall(SYS_pidfd_open, other, 0);
    if (mine_fd < 0 || other_fd < 0 || dup2(mine_fd, SLOT) < 0) return 4;
    owner.type = F_OWNER_PID;
    owner.pid = word = mine;
    pthread_t thread;
    pthread_create(&thread, NULL, by_pidfd ? swap_descriptor : flip_memory, NULL);
    time_t started = time(NULL);
    // Both have to be seen, and a loaded machine has other things to do.
    for (int round = 0; round < rounds || !let || !refused; round++) {
        time_t seconds = time(NULL) - started;
        if ((let && refused && seconds >= enough) || seconds >= 20) break;
        long result;
        if (by_pidfd)
            result = syscall(SYS_pidfd_send_signal, SLOT, SIGUSR1, NULL, 0);
        else if (by_ioctl)
            result = ioctl(sockets[0], FIOSETOWN_, &word);
        else
            result = fcntl(sockets[0], F_SETOWN_EX, &owner);
        if (result == 0) {
            let++;
            struct f_owner_ex now;
            if (!by_pidfd && (fcntl(sockets[0], F_GETOWN_EX, &now) || now.pid != mine)) wrong++;
        } else if (errno == EPERM) {
            refused++;
        } else {
            perror("attack");
            return 5;
        }
    }
    over = 1;
    pthread_join(thread, NULL);
    printf("[%d, %d, %d]\n", let, refused, wrong);
    return 0;
}
