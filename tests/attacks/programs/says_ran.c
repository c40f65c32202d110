/* A library, and a program: says so when its code runs. */
#include <unistd.h>

__attribute__((constructor)) static void says_so(void)
{
    (void)!write(1, "foreign code\n", 13);
}

int main(void)
{
    return 0;
}
