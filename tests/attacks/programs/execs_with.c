/* execs_with WAY VARIABLE PROGRAM ARGUMENT...: one variable in its environment, and nothing else;
   `i386` by the 32-bit call. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "i386.h"

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
    uint32_t *lists = low_memory();
    room = (char *)(lists + 64);
    uint32_t path = low(argv[3]);
    for (int i = 3; i < argc; i++)
        lists[i - 3] = low(argv[i]);
    uint32_t *variables = lists + 60;
    variables[0] = low(argv[2]);
    int result = i386(11, path, (uintptr_t)lists, (uintptr_t)variables, 0, 0);
    fprintf(stderr, "%s: %d\n", argv[3], result);
    return 9;
}
