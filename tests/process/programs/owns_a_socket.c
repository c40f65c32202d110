/* Makes a socket as a 32-bit program does, by socketcall, and prints who owns it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { SOCKETCALL = 102, SOCKET = 1 };

int main(void) {
    unsigned *words = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    struct stat status;
    int made;
    words[0] = AF_INET;
    words[1] = SOCK_DGRAM;
    words[2] = 0;
    __asm__ volatile("int $0x80" : "=a"(made) : "a"(SOCKETCALL), "b"(SOCKET), "c"(words) : "memory");
    if (made < 0 || fstat(made, &status) < 0) {
        printf("%d\n", made);
        return 1;
    }
    printf("%u\n", status.st_uid);
    return 0;
}
