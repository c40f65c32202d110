/* execs_as_i386 FILE WORD...: execve by int 0x80, with everything below 4 GiB. */
#include <string.h>

#include "i386.h"

int main(int argc, char **argv) {
    char *low = low_memory();
    unsigned *words = (unsigned *)low;
    char *text = low + 4096;
    strcpy(text, argv[1]);
    unsigned path = (unsigned)(unsigned long)text;
    for (int i = 2; i < argc; i++) {
        text += strlen(text) + 1;
        words[i - 2] = (unsigned)(unsigned long)strcpy(text, argv[i]);
    }
    words[argc - 2] = 0;
    i386(11, path, (unsigned)(unsigned long)words, 0, 0, 0);
    return 9;
}
