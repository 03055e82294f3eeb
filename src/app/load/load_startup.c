/* app/load/load_startup.c - CPU time and memory of processes; the time from the start of a server to its first response. */
#include "app/load/load_int.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

#define FIRST_ANSWER_MS 60000

static pid_t load_startup_start(char **command)
{
    pid_t pid = fork();
    if (pid == 0) {
        int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDOUT_FILENO);
        dup2(nothing, STDERR_FILENO);
        execvp(command[0], command);
        _exit(127);
    }
    return pid;
}

/* False: it will not be. *ret_gone: it has ended by itself. */
static bool is_up(struct load *l, pid_t pid, uint64_t began, bool *ret_gone)
{
    while (dgm_load_now_ns() - began < (uint64_t)FIRST_ANSWER_MS * 1000000u) {
        l->errors = 0;
        l->first_error[0] = '\0'; /* a refused connection is no fault yet */
        if (dgm_load_request_once(l, FIRST_ANSWER_MS, NULL))
            return true;
        if (waitpid(pid, NULL, WNOHANG) == pid) {
            *ret_gone = true;
            l->errors = 0;
            l->first_error[0] = '\0';
            dgm_load_fail(l, "%s ended before it responded: run it alone to see why",
                          l->command[0]);
            return false;
        }
        poll(NULL, 0, 1); /* not there yet: a millisecond is as fine as this needs to be */
    }
    dgm_load_fail(l, "timeout: no response at %s after %d s", l->url, FIRST_ANSWER_MS / 1000);
    return false;
}

bool dgm_load_startup(struct load *l)
{
    uint64_t rounds = l->max_requests ? l->max_requests : 10;
    if (dgm_load_request_once(l, 1000, NULL)) {
        dgm_load_fail(l, "another server already responds at %s", l->url);
        return true;
    }
    l->errors = 0;
    l->first_error[0] = '\0';
    l->began_ns = dgm_load_now_ns();
    for (uint64_t i = 0; i < rounds && !l->errors; i++) {
        uint64_t began = dgm_load_now_ns();
        bool gone = false;
        pid_t pid = load_startup_start(l->command);
        if (pid < 0) {
            dgm_cli_complain("cannot start another process: %s", strerror(errno));
            return false;
        }
        if (is_up(l, pid, began, &gone)) {
            dgm_load_hist_add(&l->latencies, dgm_load_now_ns() - began);
            l->requests++;
        }
        if (gone)
            break;
        kill(pid, SIGTERM);
        waitpid(pid, NULL, 0);
    }
    l->ended_ns = dgm_load_now_ns();
    return true;
}
