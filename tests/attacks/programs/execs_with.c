/* execs_with WAY VARIABLE PROGRAM ARGUMENT...: one variable in its environment, and nothing else;
   `i386` by the 32-bit call. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_32BIT /* another machine has no i386 programs */
#define MAP_32BIT 0
#endif

static char *room;

static uint32_t low(const char *text)
{
    char *copy = room;
    room = stpcpy(room, text) + 1;
    return (uint32_t)(uintptr_t)copy;
}

int main(int argc, char **argv)
{
    char *environment[] = {argv[2], NULL};
    if (strcmp(argv[1], "i386")) {
        execve(argv[3], argv + 3, environment);
        perror(argv[3]);
        return 9;
    }
    uint32_t *lists = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    room = (char *)(lists + 64);
    uint32_t path = low(argv[3]);
    for (int i = 3; i < argc; i++)
        lists[i - 3] = low(argv[i]);
    uint32_t *variables = lists + 60;
    variables[0] = low(argv[2]);
    long result;
#ifdef __x86_64__
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(11L), "b"((uintptr_t)path), "c"(lists), "d"(variables)
                     : "memory", "r8", "r9", "r10", "r11");
#else
    result = -ENOSYS;
#endif
    fprintf(stderr, "%s: %ld\n", argv[3], result);
    return 9;
}
