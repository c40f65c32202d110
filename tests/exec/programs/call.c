/* call HOW PROGRAM [ARGS]: execs it in one of many ways. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "i386.h"

extern char **environ;
static char **words;

static int failed(void) {
    int error = errno;
    printf("errno %d\n", error);
    fflush(stdout);
    return 77;
}

static void *from_thread(void *unused) {
    (void)unused;
    execve(words[0], words, environ);
    _exit(failed());
}

static unsigned long sum(const unsigned char *from, size_t size) {
    unsigned long total = 5381;
    for (size_t i = 0; i < size; i++) total = total * 33 + from[i];
    return total;
}

static int end_of(pid_t child) {
    int status;
    if (waitpid(child, &status, 0) < 0) return 3;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    const char *how = argv[1];
    words = argv + 2;
    if (!strcmp(how, "execve")) {
        execve(words[0], words, environ);
    } else if (!strcmp(how, "thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, from_thread, NULL);
        pthread_join(thread, NULL);
    } else if (!strcmp(how, "readonly")) {
        char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char *text = page + 1024;
        char **copy = (char **)page;
        for (int i = 0; i <= argc - 2; i++) {
            copy[i] = words[i] ? strcpy(text, words[i]) : NULL;
            if (words[i]) text += strlen(words[i]) + 1;
        }
        mprotect(page, 8192, PROT_READ);
        execve(copy[0], copy, environ);
    } else if (!strcmp(how, "spawn")) {
        pid_t child;
        int error = posix_spawn(&child, words[0], NULL, NULL, words, environ);
        if (error) {
            errno = error;
            return failed();
        }
        return end_of(child);
    } else if (!strcmp(how, "vfork")) {
        /* The parent's memory below and above, and its heap, must be as before. */
        unsigned char *heap = malloc(1 << 20);
        unsigned char stack[1 << 16];
        memset(heap, 0x5a, 1 << 20);
        memset(stack, 0xa5, sizeof stack);
        unsigned long before = sum(heap, 1 << 20) ^ sum(stack, sizeof stack);
        pid_t child = vfork();
        if (child == 0) {
            execve(words[0], words, environ);
            _exit(77);
        }
        int status = end_of(child);
        unsigned long after = sum(heap, 1 << 20) ^ sum(stack, sizeof stack);
        printf("memory %s\n", before == after ? "intact" : "changed");
        return status;
    } else if (!strcmp(how, "execveat")) {
        int fd = open(words[0], O_PATH | O_CLOEXEC);
        syscall(SYS_execveat, fd, "", words, environ, AT_EMPTY_PATH);
    } else if (!strcmp(how, "dirfd")) {
        char folder[4096];
        strcpy(folder, words[0]);
        char *slash = strrchr(folder, '/');
        *slash = 0;
        int fd = open(folder, O_PATH | O_DIRECTORY);
        syscall(SYS_execveat, fd, slash + 1, words, environ, 0);
    } else if (!strcmp(how, "procfd")) {
        int fd = open(words[0], O_RDONLY);
        char path[64];
        sprintf(path, "/proc/self/fd/%d", fd);
        execve(path, words, environ);
    } else if (!strcmp(how, "devfd")) {
        int fd = open(words[0], O_RDONLY);
        char path[64];
        sprintf(path, "/dev/fd/%d", fd);
        execve(path, words, environ);
    } else if (!strcmp(how, "fulltable")) {
        while (dup(0) >= 0) {}
        execve(words[0], words, environ);
    } else if (!strncmp(how, "i386", 4)) {
        /* int 0x80 sees 32 bits of each pointer, so everything lies low. */
        char *page = low_memory();
        unsigned *pointers = (unsigned *)page, list = (unsigned)(unsigned long)page;
        char *text = page + 1024;
        for (int i = 0; i <= argc - 2; i++) {
            pointers[i] = words[i] ? (unsigned)(unsigned long)text : 0;
            if (words[i]) text = strcpy(text, words[i]) + strlen(words[i]) + 1;
        }
        pointers[128] = 0;
        unsigned variables = list + 128 * sizeof *pointers;
        errno = -(!strcmp(how, "i386") ? i386(11, pointers[0], list, variables, 0, 0)
                                       : i386(358, AT_FDCWD, pointers[0], list, variables, 0));
    }
    return failed();
}
