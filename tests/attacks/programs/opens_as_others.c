/* opens_as_others i386|uring PATH: what is in PATH, by int 0x80 or an io_uring. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "i386.h"

static int open_as_i386(const char *path) {
    char *low = low_memory();
    strcpy(low, path);
    return i386(5, (unsigned)(unsigned long)low, O_RDONLY, 0, 0, 0);
}

static int open_by_uring(const char *path) {
    struct io_uring_params params = {0};
    int ring = syscall(SYS_io_uring_setup, 1, &params);
    if (ring < 0)
        return -errno;
    size_t size = params.sq_off.array + params.sq_entries * sizeof(unsigned);
    size_t other = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    if (other > size)
        size = other;
    char *queue = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entry =
        mmap(0, sizeof *entry, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    memset(entry, 0, sizeof *entry);
    entry->opcode = IORING_OP_OPENAT;
    entry->fd = AT_FDCWD;
    entry->addr = (unsigned long)path;
    entry->open_flags = O_RDONLY;
    ((unsigned *)(queue + params.sq_off.array))[0] = 0;
    *(unsigned *)(queue + params.sq_off.tail) = 1;
    if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) < 0)
        return -errno;
    return ((struct io_uring_cqe *)(queue + params.cq_off.cqes))->res;
}

int main(int argc, char **argv) {
    int fd = argv[1][0] == 'i' ? open_as_i386(argv[2]) : open_by_uring(argv[2]);
    if (fd < 0) {
        fprintf(stderr, "%s\n", strerrorname_np(-fd));
        return 1;
    }
    char text[4096];
    ssize_t count = read(fd, text, sizeof text);
    return count < 0 || write(1, text, count) != count;
}
