/*
 * tests/wire/lib/kill_at_commit.c - loaded into a server (LD_PRELOAD): ends it like kill -9 after a number of commits of SQLite.
 *
 * A commit in a write-ahead log ends with a frame whose head (24 bytes) names the size of the database; its page follows in
 * the next write. KILL_AT_COMMIT: the number of the commit, 0 for never. COMMITS_FILE: gets the number of commits so far.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_int commits;
static _Thread_local int is_last_frame;

static int is_wal(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path);
    return n > 4 && !memcmp(path + n - 4, "-wal", 4);
}

static void count_commit(void)
{
    const char *at = getenv("KILL_AT_COMMIT"), *file = getenv("COMMITS_FILE");
    int n = atomic_fetch_add(&commits, 1) + 1;
    int fd = file ? open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (fd >= 0) {
        dprintf(fd, "%d", n);
        close(fd);
    }
    if (at && atoi(at) == n)
        kill(getpid(), SIGKILL);
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at)
{
    static ssize_t (*next)(int, const void *, size_t, off64_t);
    const unsigned char *p = data;
    if (!next)
        next = (ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
    ssize_t done = next(fd, data, n, at);
    if (n != 24 && !is_last_frame)
        return done;
    if (!is_wal(fd))
        return done;
    if (n == 24)
        is_last_frame = (p[4] | p[5] | p[6] | p[7]) != 0;
    else {
        is_last_frame = 0;
        count_commit();
    }
    return done;
}
