/* A child that shares its parent's memory, as from a vfork to its exec, and takes much of it. */
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    size_t size = (size_t)250 << 20;
    char letter;
    if (vfork() == 0) {
        char *memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(memory, 'x', size);
        write(1, "ready\n", 6);
        read(0, &letter, 1);
        _exit(0);
    }
    wait(0);
    return 0;
}
