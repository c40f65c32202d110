/* Says whether its root is the one with a mark. */

#include <unistd.h>

int main(void)
{
    if (access("/mark", F_OK) == 0)
        return write(1, "evil\n", 5) != 5;
    return 0;
}
