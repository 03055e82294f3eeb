/* app/load/load_proc.c - what the system knows about us and about the server. */
#include "app/load/load_int.h"

#include <sys/resource.h>
#include <time.h>

static uint64_t ns_of(struct timespec t)
{
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t dgm_load_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return ns_of(t);
}

uint64_t dgm_load_own_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return ns_of(t);
}

uint64_t dgm_load_cpu_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    if (pid <= 0 || clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
        return 0;
    return ns_of(t);
}

int64_t dgm_load_rss_anon_bytes(pid_t pid)
{
    char name[64], line[256];
    long kib = -1;
    if (pid <= 0)
        return -1;
    snprintf(name, sizeof name, "/proc/%ld/status", (long)pid);
    FILE *f = fopen(name, "re");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "RssAnon: %ld", &kib) == 1)
            break;
    }
    if (f)
        fclose(f);
    return kib < 0 ? -1 : (int64_t)kib * 1024;
}
