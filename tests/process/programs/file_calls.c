/* file_calls 64|32: makes the calls that it reads, by that ABI, and says what each returns.
   A line is a call's number and its arguments: a number, "text, %N for what line N returned,
   or @FLAGS,MODE,RESOLVE for openat2. Pointers lie below 4 GiB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "i386.h"

static long by_i386(long number, const long *with) {
    return i386(number, with[0], with[1], with[2], with[3], with[4]);
}

static long by_x86_64(long number, const long *with) {
    long result;
    register long fourth __asm__("r10") = with[3];
    register long fifth __asm__("r8") = with[4];
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(with[0]), "S"(with[1]), "d"(with[2]), "r"(fourth), "r"(fifth)
                     : "memory", "rcx", "r11");
    return result;
}

int main(int argc, char **argv) {
    int is_64 = argc > 1 && !strcmp(argv[1], "64");
    static char line[16384];
    static long returned[256];
    for (int at = 0; at < 256 && fgets(line, sizeof line, stdin); at++) {
        char *low = low_memory();
        long with[6] = {0};
        line[strcspn(line, "\n")] = 0;
        char *rest = line, *word;
        int count = -1;
        long number = 0;
        while ((word = strsep(&rest, " "))) {
            long value;
            if (*word == '"') {
                value = (long)low;
                low = stpcpy(low, word + 1) + 1;
            } else if (*word == '%') {
                value = returned[atoi(word + 1)];
            } else if (*word == '@') {
                unsigned long long how[3];
                sscanf(word + 1, "%llu,%llu,%llu", how, how + 1, how + 2);
                value = (long)memcpy(low, how, sizeof how);
                low += sizeof how;
            } else {
                value = atol(word);
            }
            if (count < 0)
                number = value;
            else if (count < 6)
                with[count] = value;
            count++;
        }
        returned[at] = is_64 ? by_x86_64(number, with) : by_i386(number, with);
        printf("%ld\n", returned[at]);
        fflush(stdout);
    }
    return 0;
}
