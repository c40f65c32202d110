/* The fast path of execs: plain files that have run before.

   The extension receives a request, gathers its facts, and looks them up among those that may run.
   It judges nothing: exec/repeated.py does, if the facts are new. For everything unusual, serve()
   returns, and hands the request to the slow path.

   An exec that may run is seized, recorded, answered, compared at its exec stop and released, with
   the same calls as on the slow path (exec/verify.py). serve() returns when anything else happens:
   most of what an exec costs is memory that the processor's caches have lost, so it touches little.

   Built for the limited API: one file serves every Python since 3.11. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#include <Python.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define X86_64 0xC000003E
#define EXECVE 59
#define OPENAT2 437 /* older headers have no name for it */
#define RECEIVE 0xC0502100UL
#define SEND 0xC0182101UL
#define ID_VALID 0x40082102UL
#define FLAG_CONTINUE 1
#define PIDFD_GET_INFO 0xC040FF0BUL
#define PIDFD_INFO_EXIT 8
#define SEIZED (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)
#define ALL_CHILDREN (WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT | __WALL)

#define STATX_FLAGS 0x4000 /* AT_STATX_DONT_SYNC: only what the kernel knows */
#define NO_MAGIC_LINKS 0x02
#define CACHED 0x20
#define DISCONNECTED 0x4
#define SEARCHED_BY_ALL 0111
#define SEARCHES_ALL (1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH)

#define MOST_EXECS 128
#define MOST_WORDS 64
#define LONGEST_WORD 1024
#define LONGEST_LINE 12288
#define QUIET_MS 2
#define EXEC_STOP_COMES_WITHIN_NS 300000

typedef struct {
    uint64_t inode, device, mount;
} Place;

typedef struct {
    uint64_t code, stack, heap;
} Image;

typedef struct {
    char state, comm[64];
    int ppid, comm_length;
    uint64_t flags, threads, start, arguments, arguments_end;
    Image image;
} Stat;

/* A process that serve() has seen first, or a known one that makes an exec, until it returns. */
typedef struct {
    int pid, ppid, depth, pidfd, is_known, has_run, has_ended, comm_length;
    uint64_t start;
    Image forked, image; /* after the fork, and after its exec if that has succeeded */
    char comm[64];
    PyObject *entry; /* of its exec */
} Seen;

typedef struct {
    char path[PATH_MAX], real[PATH_MAX], cwd[PATH_MAX];
    char words[LONGEST_LINE];
    int path_length, real_length, cwd_length, words_length;
} Facts;

/* What serve() returns: nothing to do; a request for the slow path; a request that comes after what
   serve() has seen of other processes; an exec that goes on and is not over; one that it has refused
   because its event can't be recorded; results of wait(2), for the slow path; an error of the
   listener. */
enum { QUIET, LEFT, AGAIN, HELD, UNWRITTEN, CHILDREN, BROKEN };

static int listener, child_signals, proc, first_left_to_others;
static int most_children, most_processes; /* 0: no limit */
static unsigned mount_bit;
static Place our_root;
static char our_namespace[PATH_MAX];
static int our_namespace_length;
static PyObject *owner; /* of exec/repeated.py */
static PyObject *same_for_all; /* mounts on which a path is the same for every process */

static struct seccomp_notif request;
static Facts facts;
static Seen seen[MOST_EXECS];
static int seen_count;
static unsigned long long deadline_ns;

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* Return whether the owner has recorded an event. */
static int is_recorded(PyObject *done)
{
    int is_so = done == Py_True;
    Py_XDECREF(done);
    PyErr_Clear(); /* without its event, the exec is refused */
    return is_so;
}

/* What the kernel says of a process */

static Place place_in(const struct statx *found)
{
    uint64_t device = (uint64_t)found->stx_dev_major << 32 | found->stx_dev_minor;
    return (Place){found->stx_ino, device, found->stx_mnt_id};
}

static int place_of(const char *path, unsigned which_mount, Place *place)
{
    struct statx found;
    if (statx(proc, path, STATX_FLAGS, STATX_INO | which_mount, &found) < 0)
        return 0;
    *place = place_in(&found);
    return 1;
}

static int is_at(int pid, const char *link, unsigned which_mount, const Place *wanted)
{
    char path[32];
    Place found;
    snprintf(path, sizeof path, "%d/%s", pid, link);
    return place_of(path, which_mount, &found) && !memcmp(&found, wanted, sizeof found);
}

static int read_link(int pid, const char *name, char *target)
{
    char path[40];
    snprintf(path, sizeof path, "%d/%s", pid, name);
    ssize_t length = readlinkat(proc, path, target, PATH_MAX);
    return length < PATH_MAX ? (int)length : -1;
}

static int read_stat(int pid, Stat *found)
{
    char path[24], text[2048], *field;
    snprintf(path, sizeof path, "%d/stat", pid);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    if (size <= 0)
        return 0;
    text[size] = 0;
    char *left = strchr(text, '('), *right = strrchr(text, ')');
    if (!left || !right || right - left > 64 || !right[1] || !right[2])
        return 0;
    found->comm_length = right - left - 1;
    memcpy(found->comm, left + 1, found->comm_length);
    found->state = right[2];
    field = right + 3;
    for (int i = 1; i <= 46; i++) {
        uint64_t value = strtoull(field, &field, 10);
        switch (i) {
        case 1: found->ppid = value; break;
        case 6: found->flags = value; break;
        case 17: found->threads = value; break;
        case 19: found->start = value; break;
        case 23: found->image.code = value; break;
        case 25: found->image.stack = value; break;
        case 44: found->image.heap = value; break;
        case 45: found->arguments = value; break;
        case 46: found->arguments_end = value; break;
        }
    }
    return found->image.stack != 0; /* 0: no image, or not readable */
}

/* Read `size` bytes, or up to an unmapped page: each page is a part of its own. */
static ssize_t read_memory(int pid, uint64_t address, void *into, size_t size)
{
    struct iovec local = {into, size}, pages[8];
    int count = 0;
    for (size_t left = size; left && count < 8; count++) {
        size_t in_page = 4096 - (address & 4095);
        pages[count].iov_base = (void *)address;
        pages[count].iov_len = in_page < left ? in_page : left;
        address += pages[count].iov_len;
        left -= pages[count].iov_len;
    }
    return process_vm_readv(pid, &local, 1, pages, count, 0);
}

/* Return the length of a string without its NUL, or -1 if it is unreadable or too long. */
static int read_string(int pid, uint64_t address, char *into, size_t most)
{
    size_t length = 0;
    while (length < most) {
        size_t size = most - length < 256 ? most - length : 256;
        ssize_t found = read_memory(pid, address + length, into + length, size);
        if (found <= 0)
            return -1;
        char *end = memchr(into + length, 0, found);
        if (end)
            return end - into;
        length += found;
    }
    return -1;
}

static int read_words(int pid, uint64_t array)
{
    uint64_t words[MOST_WORDS + 1];
    ssize_t size = read_memory(pid, array, words, sizeof words);
    int count = 0, known = size > 0 ? size / 8 : 0;
    facts.words_length = 0;
    for (; count < known && words[count]; count++) {
        size_t left = sizeof facts.words - facts.words_length;
        int length = read_string(pid, words[count], facts.words + facts.words_length,
                                 left < LONGEST_WORD ? left : LONGEST_WORD);
        if (length < 0)
            return 0;
        facts.words_length += length + 1;
    }
    return count > 0 && count < known;
}

static void answer(int error)
{
    struct seccomp_notif_resp response = {
        .id = request.id, .error = -error, .flags = error ? 0 : FLAG_CONTINUE};
    ioctl(listener, SEND, &response); /* fails if the caller waits no more */
}

/* Ends */

static PyObject *ended; /* pidfds of other processes */

/* Return 0, for the slow path, if a signal has ended it, it is not reaped yet, or its event can't be
   recorded. */
static int has_ended_here(Seen *process)
{
    uint64_t info[8] = {PIDFD_INFO_EXIT};
    if (ioctl(process->pidfd, PIDFD_GET_INFO, info) < 0 || !(info[0] & PIDFD_INFO_EXIT))
        return 0;
    int status = (int32_t)(info[7] >> 32);
    if (!WIFEXITED(status) ||
        !is_recorded(PyObject_CallMethod(owner, "record_exit", "Oiii", process->entry, process->pid,
                                         process->ppid, WEXITSTATUS(status))))
        return 0;
    close(process->pidfd);
    process->pidfd = -1;
    process->has_ended = 1;
    return 1;
}

static void take_ends(int ends)
{
    struct epoll_event found[64];
    int count;
    do {
        count = epoll_wait(ends, found, 64, 0);
        for (int i = 0; i < count; i++) {
            int fd = found[i].data.fd, at = seen_count - 1;
            while (at >= 0 && seen[at].pidfd != fd)
                at--;
            if (at >= 0 && has_ended_here(&seen[at]))
                continue;
            PyObject *number = PyLong_FromLong(fd);
            PyList_Append(ended, number);
            Py_DECREF(number);
        }
    } while (count == 64);
}

/* One exec */

/* Open a path as sigwrap sees it, from the kernel's caches, without the links of /proc. */
static int open_at_once(const char *path, uint64_t flags)
{
    struct {
        uint64_t flags, mode, resolve;
    } how = {O_PATH | O_CLOEXEC | flags, 0, NO_MAGIC_LINKS | CACHED};
    return syscall(OPENAT2, AT_FDCWD, path, &how, sizeof how);
}

/* Return whether the file that sigwrap does not find is missing for the caller as well: a folder on
   the way to it is on a local disk, and the caller may search all that sigwrap has searched. Python
   looks at everything else. */
static int is_missing_on_a_disk(int pid)
{
    static char path[PATH_MAX], namespace[PATH_MAX];
    int is_found = 0, all_search = 1, is_root = !geteuid();
    memcpy(path, facts.path, facts.path_length + 1);
    /* The path itself may be a broken link. */
    for (char *end = path + facts.path_length; end && (!is_found || is_root);
         end = strrchr(path, '/')) {
        *end = 0;
        int fd = open_at_once(*path ? path : "/", O_NOFOLLOW);
        if (fd < 0 && !is_found && (errno == ENOENT || errno == ENOTDIR))
            continue;
        struct statx found;
        int is_read = fd >= 0 && !statx(fd, "", STATX_FLAGS | AT_EMPTY_PATH,
                                        STATX_BASIC_STATS | mount_bit, &found);
        close(fd);
        if (!is_read)
            return 0;
        PyObject *mount = PyLong_FromUnsignedLongLong(found.stx_mnt_id);
        int is_same = mount && PySet_Contains(same_for_all, mount) == 1;
        Py_XDECREF(mount);
        if (!is_same || (!is_found && !S_ISDIR(found.stx_mode)))
            return 0;
        is_found = 1;
        if (!S_ISDIR(found.stx_mode) || (~found.stx_mode & SEARCHED_BY_ALL))
            all_search = 0;
    }
    if (all_search || !is_root)
        return is_found;
    struct __user_cap_header_struct asked = {_LINUX_CAPABILITY_VERSION_3, pid};
    struct __user_cap_data_struct rights[2];
    int length = read_link(pid, "ns/user", namespace);
    return !syscall(SYS_capget, &asked, rights) && rights[0].effective & SEARCHES_ALL &&
           length > 0 && length == our_namespace_length &&
           !memcmp(namespace, our_namespace, length);
}

static int is_missing_for_it(int pid, int error)
{
    if (is_missing_on_a_disk(pid))
        return 1;
    Py_ssize_t length = facts.path_length;
    PyObject *found = PyObject_CallMethod(owner, "is_missing", "iy#i", pid, facts.path, length, error);
    int is_so = found == Py_True;
    Py_XDECREF(found);
    PyErr_Clear(); /* the slow path comes upon the same error */
    return is_so;
}

static int is_key_of(PyObject *dict, PyObject *key)
{
    int is_there = key && PyDict_Contains(dict, key) == 1;
    Py_XDECREF(key);
    return is_there;
}

static Seen *seen_here(int pid)
{
    for (int at = seen_count - 1; at >= 0; at--)
        if (seen[at].pid == pid && !seen[at].has_ended)
            return &seen[at];
    return NULL;
}

/* Return whether others can have the same image, as in session/lineage.py: without address
   randomization, and of 32 bits. */
static int is_repeatable(const Image *image)
{
    return image->stack > 0x7FFFFFFFF000 - (8 << 20) || image->stack < 0x100000000;
}

typedef struct {
    int depth; /* -1 if it is unknown, -2 if what was seen of its parent has to be taken over first */
    int ppid;
    int below; /* the nearest ancestor that has run something, if that is not the parent; else 0 */
    int siblings, processes; /* known ones that are alive, and the caller */
} Whereabouts;

/* Return the place of a process, which made no exec since its fork if it is not known. */
static Whereabouts place_of_caller(PyObject *by_pid, int pid, const Stat *stat, int is_known)
{
    Whereabouts found = {-1, stat->ppid, 0, 0, 0};
    Seen *parent = is_known ? NULL : seen_here(stat->ppid);
    if (parent) {
        if (parent->is_known)
            found.depth = -2; /* Python knows its other children */
        else if (!memcmp(&parent->image, &stat->image, sizeof stat->image))
            found.depth = parent->depth + 1;
    } else {
        PyObject *place = is_known ? PyObject_CallMethod(owner, "place_of", "iK", pid, stat->start)
                                   : PyObject_CallMethod(owner, "place_of_child", "i(KKK)i",
                                                         stat->ppid, stat->image.code,
                                                         stat->image.stack, stat->image.heap,
                                                         !seen_count);
        if (!place || !PyArg_ParseTuple(place, "iiii", &found.depth, &found.ppid, &found.below,
                                        &found.siblings))
            PyErr_Clear(); /* the slow path comes upon the same error */
        Py_XDECREF(place);
    }
    found.siblings += !is_known;
    found.processes = PyDict_Size(by_pid) + !is_known; /* its parent may be a new one */
    for (int at = 0; at < seen_count; at++)
        if (!seen[at].has_ended && !seen[at].is_known) {
            found.processes++;
            found.siblings += seen[at].ppid == found.ppid;
        }
    return found;
}

/* As in policy/judge/rules.py; the entry covers the depth. */
static int is_too_crowded(const Whereabouts *where)
{
    return (most_children && where->siblings > most_children) ||
           (most_processes && where->processes > most_processes);
}

/* Return the entry for these facts, new or known, or NULL. `judge` adds new ones. */
static PyObject *find(PyObject *remembered, const Stat *stat, int depth, int fd,
                      const struct statx *file)
{
    Place place = place_in(file);
    PyObject *key = Py_BuildValue(
        "(y#y#y#y#y#i(I(KK)K(LI)K))", facts.path, (Py_ssize_t)facts.path_length, facts.real,
        (Py_ssize_t)facts.real_length, facts.cwd, (Py_ssize_t)facts.cwd_length, stat->comm,
        (Py_ssize_t)stat->comm_length, facts.words, (Py_ssize_t)facts.words_length, depth,
        (unsigned)file->stx_mode, place.device, place.inode, file->stx_size,
        (long long)file->stx_ctime.tv_sec, file->stx_ctime.tv_nsec, place.mount);
    PyObject *entry = key ? PyDict_GetItemWithError(remembered, key) : NULL;
    if (key && !entry) {
        Py_XDECREF(PyObject_CallMethod(owner, "judge", "Oi", key, fd));
        entry = PyErr_Occurred() ? NULL : PyDict_GetItemWithError(remembered, key);
        PyErr_Clear(); /* the slow path comes upon the same error */
    }
    Py_XDECREF(key);
    return entry;
}

/* Return whether it comes to its exec stop in time. `status`: the result of wait(2), or -1. */
static int has_stopped_at_exec(int pid, int *status)
{
    uint64_t until_ns = now_ns(CLOCK_MONOTONIC) + EXEC_STOP_COMES_WITHIN_NS;
    *status = -1;
    for (;;) {
        int waited;
        pid_t found = waitpid(pid, &waited, WNOHANG | __WALL);
        if (found == pid) {
            *status = waited;
            return WIFSTOPPED(waited) && waited >> 16 == PTRACE_EVENT_EXEC;
        }
        if (found < 0 || now_ns(CLOCK_MONOTONIC) > until_ns)
            return 0;
        sched_yield();
    }
}

/* As `difference` in exec/verify.py: the file, the arguments, the root. */
static int is_as_judged(int pid, const Place *image, Stat *now)
{
    char arguments[LONGEST_LINE];
    if (!is_at(pid, "exe", mount_bit, image) || !read_stat(pid, now))
        return 0;
    if (now->arguments_end - now->arguments != (uint64_t)facts.words_length)
        return 0;
    if (read_memory(pid, now->arguments, arguments, facts.words_length) != facts.words_length ||
        memcmp(arguments, facts.words, facts.words_length))
        return 0;
    return is_at(pid, "root", STATX_MNT_ID, &our_root);
}

static int is_over(int pidfd, int fd)
{
    if (fd >= 0)
        close(fd);
    if (pidfd >= 0)
        close(pidfd);
    return LEFT;
}

static PyObject *held;

/* Up to the answer, the slow path can take over: nothing has happened yet. */
static int one_exec(PyObject *by_pid, PyObject *remembered, PyObject *paths, int ends)
{
    uint64_t since_ns = now_ns(CLOCK_MONOTONIC);
    int pid = request.pid, fd = -1, pidfd = -1, status;
    if (request.data.nr != EXECVE || request.data.arch != X86_64)
        return LEFT;
    facts.path_length = read_string(pid, request.data.args[0], facts.path, PATH_MAX);
    if (facts.path_length <= 0 || facts.path[0] != '/')
        return LEFT;
    if (!is_at(pid, "root", STATX_MNT_ID, &our_root))
        return LEFT;
    fd = open_at_once(facts.path, 0);
    if (fd < 0) {
        int error = errno;
        if ((error != ENOENT && error != ENOTDIR) || !is_missing_for_it(pid, error))
            return LEFT;
        answer(error);
        return QUIET;
    }
    if (!is_key_of(paths, PyBytes_FromStringAndSize(facts.path, facts.path_length)))
        return is_over(-1, fd);
    if (seen_here(pid)) {
        close(fd);
        return AGAIN; /* then it is known */
    }
    int is_known = is_key_of(by_pid, PyLong_FromLong(pid));
    if (!is_known) {
        pidfd = syscall(SYS_pidfd_open, pid, 0); /* fails for a thread that leads no process */
        if (pidfd < 0 || pidfd >= first_left_to_others)
            return is_over(pidfd, fd);
    }
    Stat before;
    if (!read_stat(pid, &before) || strchr("ZX", before.state) || before.flags & DISCONNECTED)
        return is_over(pidfd, fd);
    /* Another thread of a known process may be in its exec. */
    if (is_known ? before.threads != 1 : is_repeatable(&before.image))
        return is_over(pidfd, fd);
    Whereabouts where = place_of_caller(by_pid, pid, &before, is_known);
    if (where.depth < 0 || is_too_crowded(&where)) {
        is_over(pidfd, fd);
        return where.depth == -2 ? AGAIN : LEFT;
    }
    struct statx file;
    if (statx(fd, "", STATX_FLAGS | AT_EMPTY_PATH, STATX_BASIC_STATS | mount_bit, &file) < 0 ||
        !S_ISREG(file.stx_mode))
        return is_over(pidfd, fd);
    char link[32];
    snprintf(link, sizeof link, "self/fd/%d", fd);
    ssize_t length = readlinkat(proc, link, facts.real, PATH_MAX);
    facts.real_length = length < PATH_MAX ? length : -1;
    facts.cwd_length = read_link(pid, "cwd", facts.cwd);
    if (facts.real_length < 0 || facts.cwd_length < 0 || !read_words(pid, request.data.args[1]))
        return is_over(pidfd, fd);
    PyObject *entry = find(remembered, &before, where.depth, fd, &file);
    if (!entry)
        return is_over(pidfd, fd);

    /* If the caller still waits, what was read is its own. */
    if (ioctl(listener, ID_VALID, &request.id) < 0 || ptrace(PTRACE_SEIZE, pid, 0, SEIZED) < 0)
        return is_over(pidfd, fd);
    int took_us = (now_ns(CLOCK_MONOTONIC) - since_ns) / 1000;
    int is_written = is_recorded(
        PyObject_CallMethod(owner, "record_exec", "Oiiiiii", entry, pid, where.ppid, where.below,
                            where.siblings, where.processes, took_us));
    ptrace(PTRACE_INTERRUPT, pid, 0, 0); /* so that it stops also if the kernel refuses the exec */
    answer(is_written ? 0 : EACCES);

    Seen *process = &seen[seen_count++];
    memset(process, 0, sizeof *process);
    process->pid = pid;
    process->ppid = where.ppid;
    process->depth = where.depth;
    process->is_known = is_known;
    process->start = before.start;
    process->forked = process->image = before.image;
    process->comm_length = before.comm_length;
    memcpy(process->comm, before.comm, before.comm_length);
    process->entry = entry;
    process->pidfd = pidfd;
    struct epoll_event end = {.events = EPOLLIN | EPOLLET, .data.fd = pidfd};
    if (!is_known && epoll_ctl(ends, EPOLL_CTL_ADD, pidfd, &end) < 0) {
        close(pidfd);
        process->pidfd = -1;
    }
    if (!is_written) {
        held = Py_BuildValue("(iOi)", fd, entry, -1);
        return UNWRITTEN;
    }

    Place image = place_in(&file);
    Stat after;
    if (!has_stopped_at_exec(pid, &status) || !is_as_judged(pid, &image, &after)) {
        held = Py_BuildValue("(iOi)", fd, entry, status);
        return HELD;
    }
    process->image = after.image;
    process->has_run = 1;
    ptrace(PTRACE_DETACH, pid, 0, 0); /* fails if it was killed at its stop */
    close(fd);
    return QUIET;
}

/* Return whether wait(2) has something for the slow path. An exec stop that has_stopped_at_exec has
   seen leaves its signal behind. */
static int has_children_to_report(void)
{
    struct signalfd_siginfo signals[32];
    siginfo_t found = {.si_pid = 0};
    while (read(child_signals, signals, sizeof signals) == sizeof signals)
        ;
    return waitid(P_ALL, 0, &found, ALL_CHILDREN) < 0 || found.si_pid != 0;
}

static PyObject *process_tuple(const Seen *process)
{
    const Image *forked = &process->forked, *image = &process->image;
    return Py_BuildValue("(iiiKiy#(KKK)OO(KKK)OO)", process->pid, process->ppid, process->depth,
                         (unsigned long long)process->start, process->pidfd, process->comm,
                         (Py_ssize_t)process->comm_length, forked->code, forked->stack,
                         forked->heap, process->entry, process->has_run ? Py_True : Py_False,
                         image->code, image->stack, image->heap,
                         process->has_ended ? Py_True : Py_False,
                         process->is_known ? Py_True : Py_False);
}

static PyObject *serve(PyObject *module, PyObject *args)
{
    PyObject *by_pid, *remembered, *paths;
    const char *given;
    Py_ssize_t given_length;
    int poll, ends;
    if (!PyArg_ParseTuple(args, "iiO!O!O!Ky#", &poll, &ends, &PyDict_Type, &by_pid, &PyDict_Type,
                          &remembered, &PyDict_Type, &paths, &deadline_ns, &given, &given_length))
        return NULL;
    if (given_length && given_length != sizeof request) {
        PyErr_SetString(PyExc_ValueError, "a request or nothing");
        return NULL;
    }
    ended = PyList_New(0);
    held = NULL;
    seen_count = 0;

    int outcome = QUIET, has_request = 1;
    struct epoll_event quiet = {.events = 0, .data.fd = ends};
    epoll_ctl(poll, EPOLL_CTL_MOD, ends, &quiet);
    for (;;) {
        if (has_request) {
            if (given_length) {
                memcpy(&request, given, sizeof request);
                given_length = 0;
            } else {
                memset(&request, 0, sizeof request);
                if (ioctl(listener, RECEIVE, &request) < 0) {
                    if (errno != ENOENT && errno != EINTR) /* its caller is gone */
                        outcome = BROKEN;
                    break;
                }
            }
            take_ends(ends);
            if (PyList_Size(ended)) {
                outcome = AGAIN;
                break;
            }
            outcome = one_exec(by_pid, remembered, paths, ends);
            if (outcome != QUIET)
                break;
        }
        uint64_t now = now_ns(CLOCK_MONOTONIC);
        if (seen_count >= MOST_EXECS || now >= deadline_ns || PyErr_Occurred())
            break;
        struct epoll_event found[8];
        int count;
        Py_BEGIN_ALLOW_THREADS
        count = epoll_wait(poll, found, 8, QUIET_MS);
        Py_END_ALLOW_THREADS
        if (count <= 0) {
            take_ends(ends);
            break;
        }
        int is_else = 0;
        has_request = 0;
        for (int i = 0; i < count; i++)
            if (found[i].data.fd == listener && found[i].events & EPOLLIN)
                has_request = 1;
            else if (found[i].data.fd != child_signals)
                is_else = 1;
            else if (has_children_to_report())
                outcome = CHILDREN;
        if (is_else || outcome != QUIET)
            break;
    }
    struct epoll_event armed = {.events = EPOLLIN, .data.fd = ends};
    epoll_ctl(poll, EPOLL_CTL_MOD, ends, &armed);

    PyObject *processes = PyList_New(0);
    for (int at = 0; at < seen_count; at++) {
        PyObject *process = process_tuple(&seen[at]);
        PyList_Append(processes, process);
        Py_XDECREF(process);
    }
    if (!held) {
        Py_INCREF(Py_None);
        held = Py_None;
    }
    int is_asked = outcome != QUIET && outcome != CHILDREN && outcome != BROKEN;
    if (PyErr_Occurred())
        PyErr_Clear(); /* out of memory: an item is missing in a list */
    return Py_BuildValue("(iy#NNN)", outcome, (char *)&request,
                         (Py_ssize_t)(is_asked ? sizeof request : 0), processes, ended, held);
}

static PyObject *leave(PyObject *module, PyObject *args)
{
    deadline_ns = 0;
    Py_RETURN_NONE;
}

static PyObject *set_up(PyObject *module, PyObject *args)
{
    unsigned long long inode, major, minor, mount;
    if (!PyArg_ParseTuple(args, "Oiii(KKKK)IOiii", &owner, &listener, &child_signals, &proc,
                          &inode, &major, &minor, &mount, &mount_bit, &same_for_all,
                          &first_left_to_others, &most_children, &most_processes))
        return NULL;
    our_namespace_length = read_link(getpid(), "ns/user", our_namespace);
    Py_INCREF(same_for_all);
    our_root = (Place){inode, major << 32 | minor, mount};
    Py_INCREF(owner);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"set_up", set_up, METH_VARARGS, "Set up a session."},
    {"leave", leave, METH_NOARGS, "Let serve() return after this exec."},
    {"serve", serve, METH_VARARGS, "Answer requests for as long as possible."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_repeated", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__repeated(void)
{
    return PyModule_Create(&definition);
}
