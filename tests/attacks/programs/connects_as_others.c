/* connects_as_others WAY DENIED ALLOWED TRIES: tries to say its way's name to the port DENIED of
   127.0.0.1, by another ABI, without a call, or faster than anybody looks. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "i386.h"

static const char *way;
static int denied, allowed;

static struct sockaddr_in to(int port) {
    struct sockaddr_in found = {.sin_family = AF_INET, .sin_port = htons(port)};
    found.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return found;
}

static void say(int fd) {
    if (write(fd, way, strlen(way)) < 0)
        perror("write");
}

static void by_i386(void) {
    char *low = low_memory();
    struct sockaddr_in there = to(denied);
    memcpy(low, &there, sizeof there);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (i386(362, fd, (unsigned)(unsigned long)low, sizeof there, 0, 0) == 0)
        say(fd);
}

static void by_socketcall(void) {
    char *low = low_memory();
    struct sockaddr_in there = to(denied);
    memcpy(low, &there, sizeof there);
    unsigned *words = (unsigned *)(low + 1024);
    words[0] = AF_INET, words[1] = SOCK_STREAM, words[2] = 0;
    int fd = i386(102, 1, (unsigned)(unsigned long)words, 0, 0, 0);
    words[0] = fd, words[1] = (unsigned)(unsigned long)low, words[2] = sizeof there;
    if (fd >= 0 && i386(102, 3, (unsigned)(unsigned long)words, 0, 0, 0) == 0)
        say(fd);
}

/* struct msghdr of 32 bits, by which = 370 or through socketcall */
static void message_of_32_bits(int through_socketcall) {
    char *low = low_memory();
    struct sockaddr_in there = to(denied);
    memcpy(low, &there, sizeof there);
    strcpy(low + 512, way);
    unsigned *part = (unsigned *)(low + 256), *header = (unsigned *)(low + 300),
             *words = (unsigned *)(low + 1024);
    part[0] = (unsigned)(unsigned long)(low + 512), part[1] = strlen(way);
    header[0] = (unsigned)(unsigned long)low, header[1] = sizeof there;
    header[2] = (unsigned)(unsigned long)part, header[3] = 1;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    words[0] = fd, words[1] = (unsigned)(unsigned long)header, words[2] = 0;
    if (through_socketcall)
        i386(102, 16, (unsigned)(unsigned long)words, 0, 0, 0);
    else
        i386(370, fd, (unsigned)(unsigned long)header, 0, 0, 0);
}

static void by_uring(void) {
    struct io_uring_params params = {0};
    int ring = syscall(SYS_io_uring_setup, 1, &params);
    if (ring < 0)
        return;
    size_t size = params.sq_off.array + params.sq_entries * sizeof(unsigned);
    size_t other = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    if (other > size)
        size = other;
    char *queue = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entry =
        mmap(0, sizeof *entry, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    memset(entry, 0, sizeof *entry);
    struct sockaddr_in there = to(denied);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    entry->opcode = IORING_OP_CONNECT;
    entry->fd = fd;
    entry->addr = (unsigned long)&there;
    entry->off = sizeof there;
    ((unsigned *)(queue + params.sq_off.array))[0] = 0;
    *(unsigned *)(queue + params.sq_off.tail) = 1;
    if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) >= 0 &&
        ((struct io_uring_cqe *)(queue + params.cq_off.cqes))->res == 0)
        say(fd);
}

/* What another thread changes meanwhile */

static volatile int goes_on = 1, swaps;
static struct sockaddr_in there;
static struct iovec part;
static struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
static int swapped = -1, datagrams, stream;

static void *swap_address(void *unused) {
    while (goes_on) {
        swaps = 1;
        __atomic_store_n(&there.sin_port, htons(denied), __ATOMIC_SEQ_CST);
        __atomic_store_n(&there.sin_port, htons(allowed), __ATOMIC_SEQ_CST);
    }
    return unused;
}

static void *swap_name(void *unused) {
    while (goes_on) {
        swaps = 1;
        __atomic_store_n(&message.msg_name, (void *)&there, __ATOMIC_SEQ_CST);
        __atomic_store_n(&message.msg_name, (void *)0, __ATOMIC_SEQ_CST);
    }
    return unused;
}

static void *swap_socket(void *unused) {
    while (goes_on) {
        swaps = 1;
        dup2(datagrams, swapped);
        dup2(stream, swapped);
    }
    return unused;
}

static void race(void *(*swap)(void *), void (*once)(void), int tries) {
    pthread_t thread;
    pthread_create(&thread, 0, swap, 0);
    while (!swaps)
        ;
    while (tries-- > 0)
        once();
    goes_on = 0;
    pthread_join(thread, 0);
}

static void connect_once(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&there, sizeof there) == 0)
        say(fd);
    close(fd);
}

static void send_once(void) {
    sendto(datagrams, way, strlen(way), MSG_DONTWAIT, (struct sockaddr *)&there, sizeof there);
}

static void send_message_once(void) {
    sendmsg(swapped >= 0 ? swapped : datagrams, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int main(int argc, char **argv) {
    if (argc != 5)
        return 2;
    way = argv[1], denied = atoi(argv[2]), allowed = atoi(argv[3]);
    int tries = atoi(argv[4]), both[2];
    there = to(allowed);
    part.iov_base = (void *)way, part.iov_len = strlen(way);
    datagrams = socket(AF_INET, SOCK_DGRAM, 0);
    if (!strcmp(way, "by_i386"))
        by_i386();
    else if (!strcmp(way, "by_socketcall"))
        by_socketcall();
    else if (!strcmp(way, "by_a_message_of_32_bits"))
        message_of_32_bits(0);
    else if (!strcmp(way, "by_a_message_through_socketcall"))
        message_of_32_bits(1);
    else if (!strcmp(way, "by_a_ring"))
        by_uring();
    else if (!strcmp(way, "with_another_address"))
        race(swap_address, connect_once, tries);
    else if (!strcmp(way, "with_another_address_for_a_datagram"))
        race(swap_address, send_once, tries);
    else if (!strcmp(way, "with_a_name_at_last")) {
        there = to(denied);
        message.msg_namelen = sizeof there;
        race(swap_name, send_message_once, tries);
    } else if (!strcmp(way, "with_another_socket")) {
        there = to(denied);
        message.msg_name = &there, message.msg_namelen = sizeof there;
        socketpair(AF_UNIX, SOCK_STREAM, 0, both);
        stream = both[0], swapped = dup(stream);
        race(swap_socket, send_message_once, tries);
    } else
        return 2;
    return 0;
}
