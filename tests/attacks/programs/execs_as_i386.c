/* execs_as_i386 FILE WORD...: execve by int 0x80, with everything below 4 GiB. */
#include <string.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
    char *low = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    unsigned *words = (unsigned *)low;
    char *text = low + 4096;
    strcpy(text, argv[1]);
    unsigned path = (unsigned)(unsigned long)text;
    for (int i = 2; i < argc; i++) {
        text += strlen(text) + 1;
        words[i - 2] = (unsigned)(unsigned long)strcpy(text, argv[i]);
    }
    words[argc - 2] = 0;
    long result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(11), "b"(path), "c"((unsigned)(unsigned long)words), "d"(0)
                     : "memory", "r8", "r9", "r10", "r11");
    return 9;
}
