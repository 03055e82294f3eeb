/*
 * net/process.c - a child process: its pipes, its end. How it is started is in process_spawn.c.
 *
 *   RUNNING ── leader exits: its group is killed, it is reaped ──► DRAINING ── end of all outputs,
 *   or DRAIN_MS without ──► CLOSING ── all handles closed, on_exit ──► gone
 */
#include "net/process_int.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process that holds the pipes of a dead child open has left its group on purpose; we do not wait for it. */
#define DRAIN_MS 500
#define LOOK_MS 20 /* without pidfd: how often we look whether it is still there */
#define READ_BYTES 65536
#define MAX_ERROR_LINE_BYTES 4096 /* stderr is for people */

enum state { RUNNING, DRAINING, CLOSING };

/* Bytes to the child: stdin, or the channel. */
struct input {
    uv_stream_t *stream;
    size_t backlog;
    bool is_open, ends; /* ends: closed when all bytes are written */
};

struct output {
    uv_pipe_t pipe;
    dgm_buf hold; /* the beginning of a line whose end did not come yet */
    bool cut;     /* pieces of the line in hold were given out already */
    bool ended, paused;
    void (*on_line)(void *user, dgm_str line, dgm_line_end end);
};

struct dgm_process {
    enum state state;
    dgm_loop *loop;
    dgm_process_handler handler;
    dgm_process_exit how;
    pid_t pid;
    int pidfd; /* -1: none */
    uint64_t grace_ms;
    uv_pipe_t in_pipe;
    struct input in, channel_in;
    struct output out, error_out;
    struct output channel; /* of a child without one: ended */
    bool has_channel;
    uv_shutdown_t shutdown; /* of the channel */
    uv_poll_t watch;
    dgm_timer kill_timer, look_timer; /* look: for the exit, then for the end of draining */
    dgm_loop_stop stop;
    size_t open_handles;
    char bytes[READ_BYTES]; /* all outputs read into it, one after the other */
};

struct write {
    uv_write_t req;
    dgm_process *p;
    struct input *in;
    size_t n;
    char bytes[];
};

/* ---- the end -------------------------------------------------------------------------------------------- */

static void handle_closed(dgm_process *p)
{
    if (--p->open_handles > 0)
        return;
    p->handler.on_exit(p->handler.user, p->how);
    if (p->pidfd >= 0)
        close(p->pidfd);
    dgm_buf_done(&p->out.hold);
    dgm_buf_done(&p->error_out.hold);
    dgm_buf_done(&p->channel.hold);
    free(p);
}

static void on_uv_closed(uv_handle_t *h)
{
    handle_closed(h->data);
}

static void on_timer_closed(void *arg)
{
    handle_closed(arg);
}

static void close_input(dgm_process *p)
{
    if (!p->in.is_open)
        return;
    p->in.is_open = false;
    uv_close((uv_handle_t *)&p->in_pipe, on_uv_closed);
}

static void process_start_close(dgm_process *p)
{
    if (p->state == CLOSING)
        return;
    p->state = CLOSING;
    dgm_loop_off_stop(p->loop, &p->stop);
    close_input(p);
    uv_close((uv_handle_t *)&p->out.pipe, on_uv_closed);
    uv_close((uv_handle_t *)&p->error_out.pipe, on_uv_closed);
    p->channel_in.is_open = false;
    if (p->has_channel)
        uv_close((uv_handle_t *)&p->channel.pipe, on_uv_closed);
    if (p->pidfd >= 0)
        uv_close((uv_handle_t *)&p->watch, on_uv_closed);
    dgm_timer_close(&p->kill_timer, on_timer_closed, p);
    dgm_timer_close(&p->look_timer, on_timer_closed, p);
}

static void check_drained(dgm_process *p)
{
    if (p->state == DRAINING && p->out.ended && p->error_out.ended && p->channel.ended)
        process_start_close(p);
}

static void on_exited(dgm_process *p)
{
    int status = 0;
    /* Its number is its group's until it is reaped: so first the group, then the leader. */
    kill(-p->pid, SIGKILL);
    dgm_process_guard_remove(p->pid);
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
        ;
    p->how.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    p->how.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    p->state = DRAINING;
    dgm_timer_stop(&p->kill_timer);
    dgm_timer_start(&p->look_timer, DRAIN_MS);
    check_drained(p);
}

static bool has_exited(const dgm_process *p)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == p->pid;
}

static void on_pidfd(uv_poll_t *h, int status, int events)
{
    dgm_process *p = h->data;
    (void)status;
    (void)events;
    if (p->state == RUNNING && has_exited(p)) {
        uv_poll_stop(h);
        on_exited(p);
    }
}

static void process_deliver_rest(dgm_process *p, struct output *o);

static void on_process_check(void *arg)
{
    dgm_process *p = arg;
    if (p->state == RUNNING && has_exited(p))
        on_exited(p);
    else if (p->state == RUNNING)
        dgm_timer_start(&p->look_timer, LOOK_MS);
    else if (p->state == DRAINING && !p->out.paused && !p->channel.paused) {
        /* paused: resume starts the clock again */
        process_deliver_rest(p, &p->out);
        process_deliver_rest(p, &p->error_out);
        process_deliver_rest(p, &p->channel);
        process_start_close(p);
    }
}

static void on_grace_over(void *arg)
{
    dgm_process *p = arg;
    if (p->state == RUNNING)
        kill(-p->pid, SIGKILL);
}

/* The loop ends, and has no time for manners. */
static void on_process_stop(void *arg)
{
    dgm_process *p = arg;
    p->how.killed = true;
    if (p->state == RUNNING)
        kill(-p->pid, SIGKILL);
    else
        process_start_close(p);
}

/* ---- reading -------------------------------------------------------------------------------------------- */

static void process_deliver(dgm_process *p, const struct output *o, dgm_str line, dgm_line_end end)
{
    if (o->on_line)
        o->on_line(p->handler.user, line, end);
}

/* A line's end is here: what was held of it, and these bytes. */
static void process_deliver_line(dgm_process *p, struct output *o, dgm_str rest, dgm_line_end end)
{
    if (o->hold.n == 0) {
        process_deliver(p, o, rest, end);
    } else {
        dgm_buf_add_str(&o->hold, rest);
        process_deliver(p, o, dgm_buf_str(&o->hold), end);
        dgm_buf_clear(&o->hold);
    }
    o->cut = false;
    dgm_buf_shrink(&o->hold, READ_BYTES);
}

static void process_read(dgm_process *p, struct output *o, dgm_str bytes)
{
    while (bytes.n > 0) {
        const char *newline = memchr(bytes.p, '\n', bytes.n);
        size_t n = newline ? (size_t)(newline - bytes.p) : bytes.n;
        size_t room = o->hold.max - o->hold.n;
        if (n > room) {
            process_deliver_line(p, o, (dgm_str){bytes.p, room}, DGM_LINE_CUT);
            o->cut = true;
            n = room;
        } else if (newline) {
            process_deliver_line(p, o, (dgm_str){bytes.p, n}, DGM_LINE_WHOLE);
            n++;
        } else {
            dgm_buf_add(&o->hold, bytes.p, n);
        }
        bytes.p += n;
        bytes.n -= n;
    }
}

/* No more will come. */
static void process_deliver_rest(dgm_process *p, struct output *o)
{
    if (o->ended)
        return;
    o->ended = true;
    if (o->hold.n > 0 || o->cut)
        process_deliver_line(p, o, (dgm_str){"", 0}, DGM_LINE_LAST);
    if (o == &p->channel && p->handler.on_channel_end)
        p->handler.on_channel_end(p->handler.user);
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    dgm_process *p = h->data;
    (void)suggested;
    *buf = uv_buf_init(p->bytes, READ_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    dgm_process *p = stream->data;
    struct output *o = (uv_pipe_t *)stream == &p->out.pipe         ? &p->out
                       : (uv_pipe_t *)stream == &p->error_out.pipe ? &p->error_out
                                                                   : &p->channel;
    if (n > 0) {
        process_read(p, o, (dgm_str){buf->base, (size_t)n});
    } else if (n < 0) { /* the end, or an error that means the same to us */
        uv_read_stop(stream);
        process_deliver_rest(p, o);
        check_drained(p);
    }
}

/* ---- writing -------------------------------------------------------------------------------------------- */

static void on_shutdown(uv_shutdown_t *req, int status)
{
    (void)req;
    (void)status;
}

static void check_input(dgm_process *p, struct input *in)
{
    if (!in->ends || in->backlog > 0 || !in->is_open)
        return;
    if (in == &p->in) {
        close_input(p);
        return;
    }
    in->is_open = false; /* the handle stays: the other direction is read */
    uv_shutdown(&p->shutdown, in->stream, on_shutdown);
}

static void on_written(uv_write_t *req, int status)
{
    struct write *w = (struct write *)req;
    dgm_process *p = w->p;
    struct input *in = w->in;
    (void)status; /* a child that closed its input does not want more: that is its business */
    in->backlog -= w->n;
    free(w);
    check_input(p, in);
}

static void process_write_to(dgm_process *p, struct input *in, dgm_str bytes)
{
    if (!in->is_open || in->ends || bytes.n == 0)
        return;
    struct write *w = dgm_xmalloc(sizeof *w + bytes.n);
    w->p = p;
    w->in = in;
    w->n = bytes.n;
    memcpy(w->bytes, bytes.p, bytes.n);
    in->backlog += bytes.n;
    uv_buf_t buf = uv_buf_init(w->bytes, (unsigned)bytes.n);
    if (uv_write(&w->req, in->stream, &buf, 1, on_written) != 0) {
        in->backlog -= bytes.n;
        free(w);
    }
}

/* ---- starting ------------------------------------------------------------------------------------------- */

static void open_stream(dgm_process *p, uv_pipe_t *pipe, int *fd)
{
    uv_pipe_init(&p->loop->uv, pipe, 0);
    pipe->data = p;
    p->open_handles++;
    int rc = uv_pipe_open(pipe, *fd);
    assert(rc == 0);
    (void)rc;
    *fd = -1; /* the handle's now */
}

static void init_output(dgm_process *p, struct output *o, int *fd, size_t max_line)
{
    dgm_buf_init(&o->hold, max_line);
    open_stream(p, &o->pipe, fd);
    uv_read_start((uv_stream_t *)&o->pipe, on_alloc, on_read);
}

static void watch_exit(dgm_process *p, bool without_pidfd)
{
    p->pidfd = -1;
#ifdef SYS_pidfd_open
    if (!without_pidfd)
        p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    if (p->pidfd >= 0 && uv_poll_init(&p->loop->uv, &p->watch, p->pidfd) != 0) {
        close(p->pidfd);
        p->pidfd = -1;
    }
#endif
    if (p->pidfd >= 0) {
        p->watch.data = p;
        p->open_handles++;
        uv_poll_start(&p->watch, UV_READABLE, on_pidfd);
    } else {
        dgm_timer_start(&p->look_timer, LOOK_MS);
    }
}

static void init_channel(dgm_process *p, int *fd, size_t max_line)
{
    p->channel.ended = false;
    p->channel.on_line = p->handler.on_channel_line;
    p->has_channel = true;
    init_output(p, &p->channel, fd, max_line);
    p->channel_in = (struct input){.stream = (uv_stream_t *)&p->channel.pipe, .is_open = true};
}

/* stdin, stdout, stderr, each a read end and a write end; the channel, our end and the child's. */
static bool process_open_fds(const dgm_process_options *options, int fds[8])
{
    if (!options->channel_line_bytes)
        return dgm_process_open_pipe(fds) && dgm_process_open_pipe(fds + 2) &&
               dgm_process_open_pipe(fds + 4);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    fds[0] = null >= 0 ? fcntl(null, F_DUPFD_CLOEXEC, 3) : -1; /* above stdio */
    dgm_process_close_all(&null, 1);
    return fds[0] >= 0 && dgm_process_open_pipe(fds + 2) && dgm_process_open_pipe(fds + 4) &&
           dgm_process_open_channel(fds + 6);
}

dgm_code dgm_process_start(dgm_loop *loop, const dgm_process_options *options,
                           dgm_process_handler handler, dgm_process **ret_process, dgm_err *err)
{
    int fds[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
    size_t max_line = options->max_line_bytes ? options->max_line_bytes : DGM_MAX_RECORD_BYTES;
    pid_t pid = 0;
    dgm_code rc = DGM_OK;
    if (!process_open_fds(options, fds))
        rc = dgm_fail(err, DGM_UNAVAILABLE, NULL, "cannot start \"%s\": %s", options->argv[0],
                      strerror(errno));
    struct dgm_process_spawn s = {.argv = options->argv,
                                  .env = options->env,
                                  .cwd = options->cwd,
                                  .stdio = {fds[0], fds[3], fds[5]},
                                  .channel = options->channel_line_bytes ? fds[7] : 0};
    if (rc || (rc = dgm_process_spawn(&s, &pid, err))) {
        dgm_process_close_all(fds, 8);
        return rc;
    }
    dgm_process_guard_add(pid);
    dgm_process *p = dgm_xcalloc(1, sizeof *p);
    p->loop = loop;
    p->handler = handler;
    p->pid = pid;
    p->grace_ms = options->grace_ms;
    if (fds[1] >= 0) {
        open_stream(p, &p->in_pipe, &fds[1]);
        p->in = (struct input){.stream = (uv_stream_t *)&p->in_pipe, .is_open = true};
    }
    p->channel.ended = true;
    if (options->channel_line_bytes)
        init_channel(p, &fds[6], options->channel_line_bytes);
    p->out.on_line = handler.on_line;
    p->error_out.on_line = handler.on_error_line;
    init_output(p, &p->out, &fds[2], max_line);
    init_output(p, &p->error_out, &fds[4],
                max_line < MAX_ERROR_LINE_BYTES ? max_line : MAX_ERROR_LINE_BYTES);
    dgm_timer_init(loop, &p->kill_timer, on_grace_over, p);
    dgm_timer_init(loop, &p->look_timer, on_process_check, p);
    p->open_handles += 2;
    p->stop = (dgm_loop_stop){.fn = on_process_stop, .arg = p};
    dgm_loop_on_stop(loop, &p->stop);
    watch_exit(p, options->without_pidfd);
    dgm_process_close_all(fds, 8);
    *ret_process = p;
    return DGM_OK;
}

int dgm_process_pid(const dgm_process *p)
{
    return p->pid;
}

void dgm_process_write(dgm_process *p, dgm_str bytes)
{
    process_write_to(p, &p->in, bytes);
}

void dgm_process_end_input(dgm_process *p)
{
    p->in.ends = true;
    check_input(p, &p->in);
}

size_t dgm_process_backlog(const dgm_process *p)
{
    return p->in.backlog;
}

void dgm_process_send(dgm_process *p, dgm_str bytes)
{
    process_write_to(p, &p->channel_in, bytes);
}

void dgm_process_end_channel(dgm_process *p)
{
    p->channel_in.ends = true;
    check_input(p, &p->channel_in);
}

size_t dgm_process_channel_backlog(const dgm_process *p)
{
    return p->channel_in.backlog;
}

static void pause_output(dgm_process *p, struct output *o)
{
    if (o->paused || o->ended || p->state == CLOSING)
        return;
    o->paused = true;
    uv_read_stop((uv_stream_t *)&o->pipe);
}

static void resume_output(dgm_process *p, struct output *o)
{
    if (!o->paused || p->state == CLOSING)
        return;
    o->paused = false;
    if (!o->ended)
        uv_read_start((uv_stream_t *)&o->pipe, on_alloc, on_read);
    if (p->state == DRAINING)
        dgm_timer_start(&p->look_timer, DRAIN_MS);
}

void dgm_process_pause(dgm_process *p)
{
    pause_output(p, &p->out);
}

void dgm_process_resume(dgm_process *p)
{
    resume_output(p, &p->out);
}

void dgm_process_pause_channel(dgm_process *p)
{
    pause_output(p, &p->channel);
}

void dgm_process_resume_channel(dgm_process *p)
{
    resume_output(p, &p->channel);
}

void dgm_process_kill(dgm_process *p)
{
    if (p->state != RUNNING)
        return;
    if (!p->how.killed)
        dgm_timer_start(&p->kill_timer, p->grace_ms);
    p->how.killed = true;
    kill(-p->pid, SIGTERM);
}
