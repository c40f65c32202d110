/* Calls of the i386 ABI from a program of x86_64, with all that they point to below 4 GiB. Another
   machine has none. */
#include <errno.h>
#include <sys/mman.h>

#ifndef MAP_32BIT
#define MAP_32BIT 0
#endif

__attribute__((unused)) static void *low_memory(void) {
    return mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
}

/* Inline, since some of them return a second time, on the same stack. */
__attribute__((always_inline, unused)) static inline int i386(
    int number, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e) {
#ifdef __x86_64__
    int result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
                     : "memory", "r8", "r9", "r10", "r11");
    return result;
#else
    return -ENOSYS;
#endif
}
