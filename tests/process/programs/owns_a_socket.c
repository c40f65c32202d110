/* Makes a socket as a 32-bit program does, by socketcall, and prints who owns it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "i386.h"

enum { SOCKETCALL = 102, SOCKET = 1 };

int main(void) {
    unsigned *words = low_memory();
    struct stat status;
    words[0] = AF_INET;
    words[1] = SOCK_DGRAM;
    words[2] = 0;
    int made = i386(SOCKETCALL, SOCKET, (unsigned)(unsigned long)words, 0, 0, 0);
    if (made < 0 || fstat(made, &status) < 0) {
        printf("%d\n", made);
        return 1;
    }
    printf("%u\n", status.st_uid);
    return 0;
}
