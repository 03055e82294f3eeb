/*
 * fuzz_frontend.c - whole frontends: requests go in, streams come out, and clients disconnect at any byte.
 *
 * Every input starts a server of its own in this process (router, all frontends, core, the memory store, one loop) on a
 * unix socket, plays its steps, drains the server and frees it: what is not freed then is a leak. The agent does what
 * the input says. The sockets take little at a time, so streams wait for their readers.
 *
 * The first line is "frontend". Each line behind it is a step; its first character says which. N is a number.
 *
 *   Apath      |  a new script for the agent; the lines behind it that begin with '|' are its steps:
 *   |{...}        an event as a program writes it (JSON, A2A or internal)
 *   |letters      w working  t a short text  T 20 KiB  H 200 KiB  q a question  c a call to the caller  f a file
 *                 m a Message  F failed  C completed  p goes on in the next turn of the loop  P waits for a step 'g'
 *   hNAME: V      a header for the next request      b  the next request is bob's
 *   kN            the next request is cut at byte N, and its client disconnects
 *   Ppath, next line is the body; Gpath; Dpath       a request, on the next of four connections
 *   rCN           reads at most N bytes from connection C
 *   xC            connection C is reset; fC is half closed
 *   g             agents that wait go on             y  waits until the server is idle
 *
 * In paths, headers and bodies $R, $M, $T, $C, $V, $F is the last id of a response, item, task, context, conversation,
 * file that a client read, $I the last interrupt. With FUZZ_TRACE in the environment everything that is sent and read is
 * printed.
 */
#define _GNU_SOURCE /* accept4, memmem */
#include "config/agents.h"
#include "app/serve/router.h"
#include "backend/backend_int.h"
#include "backend/exec/exec_int.h"
#include "fuzz/fuzz.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_STEPS 64
#define MAX_CONNS 4
#define MAX_SCRIPTS 8
#define MAX_SCRIPT_STEPS 64
#define SEND_BUFFER 4096
#define DRAIN_MS 20

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* The server's sockets: what they cannot take becomes its backlog. */
int accept4(int fd, __SOCKADDR_ARG address, socklen_t *restrict n, int flags)
{
    int one = (int)syscall(SYS_accept4, fd, address, n, flags), size = SEND_BUFFER;
    if (one >= 0)
        setsockopt(one, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    return one;
}

/* ---- the agent --------------------------------------------------------------------------------------------- */

struct script {
    dgm_str steps[MAX_SCRIPT_STEPS];
    size_t n;
};

/* One run of it. On the loop. */
struct play {
    dgm_run *run;
    const struct script *script;
    size_t step, letter;
    bool waits, is_posted;
    struct play *next;
};

static struct {
    struct script scripts[MAX_SCRIPTS];
    size_t n_scripts, n_runs;
    struct play *plays;
    bool hurry; /* no agent waits any more */
} stage;

static void play_on(struct play *p);

static void play_end(struct play *p, const char *error)
{
    struct play **at = &stage.plays;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    dgm_run *run = p->run;
    free(p);
    run->ops->end(run, error);
}

static void play_posted(void *arg)
{
    struct play *p = arg;
    p->is_posted = false;
    if (p->run->canceled && !p->waits) {
        dgm_run_status(p->run, DGM_STATE_CANCELED, (dgm_str){0}, NULL);
        play_end(p, NULL);
        return;
    }
    play_on(p);
}

static void play_later(struct play *p)
{
    if (p->is_posted)
        return;
    p->is_posted = true;
    dgm_loop_post(p->run->loop, play_posted, p);
}

static void emit_line(struct play *p, dgm_str line)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_mint mint = {{0}, 0, {0}};
    dgm_event event;
    if (!dgm_exec_read_event(a, &mint, 1, line, &event, NULL))
        p->run->ops->emit(p->run, &event, NULL);
}

static void emit_text(struct play *p, size_t n)
{
    char *text = malloc(n);
    memset(text, 'x', n);
    text[n - 1] = '\n';
    dgm_run_chunk(p->run, DGM_STR(DGM_ANSWER_ID), (dgm_str){0}, (dgm_str){text, n}, p->letter > 0,
                  false, NULL);
    free(text);
}

static void emit_file(struct play *p)
{
    dgm_part part = {.kind = DGM_PART_RAW,
                     .content = DGM_STR("PHN2Zz48L3N2Zz4="),
                     .media_type = DGM_STR("text/html"),
                     .filename = DGM_STR("a.html")};
    dgm_run_artifact(p->run, DGM_STR("file"), (dgm_str){0}, (dgm_parts){&part, 1}, NULL);
}

/* False: it does not go on at once. */
static bool play_letter(struct play *p, char letter)
{
    switch (letter) {
    case 'w': dgm_run_indicate(p->run, DGM_STR("working"), NULL); break;
    case 't': emit_text(p, 8); break;
    case 'T': emit_text(p, (size_t)20 << 10); break;
    case 'H': emit_text(p, (size_t)200 << 10); break;
    case 'q': dgm_run_status(p->run, DGM_STATE_INPUT_REQUIRED, DGM_STR("which?"), NULL); break;
    case 'c':
        emit_line(p, DGM_STR("{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{"
                             "\"state\":\"TASK_STATE_INPUT_REQUIRED\",\"message\":{\"messageId\":"
                             "\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"data\":{\"tool_calls\":[{"
                             "\"call_id\":\"call\",\"name\":\"f\",\"args\":{}}]}}]}}}}"));
        break;
    case 'f': emit_file(p); break;
    case 'm': dgm_run_reply(p->run, DGM_STR("hello"), NULL); break;
    case 'F': dgm_run_fail(p->run, DGM_STR("it broke"), NULL); break;
    case 'C': dgm_run_status(p->run, DGM_STATE_COMPLETED, DGM_STR("done"), NULL); break;
    case 'p': play_later(p); return false;
    case 'P':
        if (stage.hurry)
            break;
        p->waits = true;
        return false;
    default: break;
    }
    return true;
}

static void play_on(struct play *p)
{
    p->waits = false;
    for (; p->step < p->script->n; p->step++, p->letter = 0) {
        dgm_str line = p->script->steps[p->step];
        if (line.n && line.p[0] == '{') {
            emit_line(p, line);
            continue;
        }
        while (p->letter < line.n) {
            if (!play_letter(p, line.p[p->letter++]))
                return;
        }
    }
    play_end(p, NULL);
}

static void agent_start(void *agent, dgm_run *run)
{
    static const struct script nothing;
    struct play *p = calloc(1, sizeof *p);
    (void)agent;
    p->run = run;
    p->script = stage.n_scripts ? &stage.scripts[stage.n_runs++ % stage.n_scripts] : &nothing;
    p->next = stage.plays;
    stage.plays = p;
    play_on(p);
}

static void agent_cancel(void *agent, dgm_run *run)
{
    (void)agent;
    for (struct play *p = stage.plays; p; p = p->next) {
        if (p->run == run) {
            p->waits = false;
            play_later(p);
            return;
        }
    }
}

static dgm_code agent_open(const dgm_json *config, const dgm_agent_options *options,
                           void **ret_agent, dgm_err *err)
{
    (void)config, (void)options, (void)err;
    *ret_agent = &stage;
    return DGM_OK;
}

static void agent_close(void *agent)
{
    (void)agent;
}

static const dgm_inner played = {.open = agent_open,
                                 .close = agent_close,
                                 .start = agent_start,
                                 .cancel = agent_cancel,
                                 .lacks_final_text = true};
DGM_SHAPED_OPEN(open_played, played)
static const dgm_backend played_backend = {
    .type = "bench", .about = "", .foreign = true, DGM_SHAPED(open_played)};

/* ---- the server ---------------------------------------------------------------------------------------------- */

struct fuzz_server {
    dgm_store *store;
    dgm_loops *loops;
    dgm_core_agent agents[2];
    dgm_agents *opened;
    dgm_core *core;
    dgm_router *router;
    dgm_http_server *http;
    sem_t done;
};

static dgm_logger *logger;
static struct sockaddr_un address;

static void remove_folder(void)
{
    unlink(address.sun_path);
    *strrchr(address.sun_path, '/') = 0;
    rmdir(address.sun_path);
}

static void prepare(void)
{
    static char folder[] = "/tmp/dragoman-fuzz-XXXXXX";
    if (logger)
        return;
    signal(SIGPIPE, SIG_IGN);
    logger = dgm_logger_new(open("/dev/null", O_WRONLY | O_CLOEXEC), DGM_LOG_ERROR, DGM_LOG_JSON);
    must(mkdtemp(folder) != NULL);
    address.sun_family = AF_UNIX;
    snprintf(address.sun_path, sizeof address.sun_path, "%s/s", folder);
    atexit(remove_folder);
}

static dgm_config *load_config(void)
{
    char text[400];
    int n = snprintf(text, sizeof text,
                     "listen: unix:%s\nstore: 'memory:'\ntokens:\n"
                     "  - {token: alice, principal: alice}\n  - {token: bob, principal: bob}\n"
                     "agents:\n  - {id: fuzz, type: bench, reply: auto, default: true}\n"
                     "  - {id: other, type: bench, answer_source: status}\n",
                     address.sun_path);
    dgm_config *c = dgm_config_load(
        &(dgm_config_source){.file = "dragoman.yaml", .text = {text, (size_t)n}, .no_files = true});
    must(c->n_errors == 0);
    return c;
}

static void on_recovered(dgm_code code, const dgm_err *err, void *arg)
{
    struct fuzz_server *s = arg;
    (void)err;
    must(!code);
    sem_post(&s->done);
}

static void recover(void *arg)
{
    struct fuzz_server *s = arg;
    dgm_core_recover(s->core, on_recovered, s);
}

static void server_start(struct fuzz_server *s)
{
    static const char *const ids[] = {"fuzz", "other"};
    dgm_config *c = load_config();
    s->opened = dgm_agents_new(NULL, NULL);
    for (size_t i = 0; i < 2; i++) {
        dgm_agent_options o = {.reply = i ? DGM_REPLY_TASK : DGM_REPLY_AUTO, .answer_in_status = i};
        s->agents[i] = (dgm_core_agent){.id = dgm_str_from(ids[i]),
                                        .backend = &played_backend,
                                        .foreign = true,
                                        .dedupe = true};
        must(!played_backend.open(NULL, &o, &s->agents[i].agent, NULL));
        dgm_agents_add(s->opened, &s->agents[i]);
    }
    sem_init(&s->done, 0, 0);
    must(!dgm_store_open("memory:", &s->store, NULL) && !dgm_loops_new(1, &s->loops, NULL));
    must(!dgm_core_new(
        &(dgm_core_options){
            .loops = s->loops, .store = s->store, .agents = s->agents, .n_agents = 2},
        &s->core, NULL));
    s->router = dgm_router_new(&(dgm_router_options){.loops = s->loops,
                                                     .core = s->core,
                                                     .store = s->store,
                                                     .logger = logger,
                                                     .agents = s->opened});
    dgm_http_options http = {.listen = c->listen.p};
    must(!dgm_http_server_new(s->loops, &http, dgm_router_handler(s->router), &s->http, NULL));
    must(!dgm_router_use(s->router, c, NULL) && !dgm_loops_start(s->loops, NULL));
    dgm_loop_post(dgm_loops_at(s->loops, 0), recover, s);
    sem_wait(&s->done);
    must(!dgm_http_server_start(s->http, NULL));
    dgm_router_set_reason(s->router, NULL);
}

static void on_reached(void *arg)
{
    struct fuzz_server *s = arg;
    sem_post(&s->done);
}

/* A few turns of the loop: posts, answers of the store and writes are done by then. */
static void server_settle(struct fuzz_server *s)
{
    for (int i = 0; i < 6; i++) {
        dgm_loop_post(dgm_loops_at(s->loops, 0), on_reached, s);
        sem_wait(&s->done);
    }
}

static void continue_plays(void *arg)
{
    (void)arg;
    for (struct play *p = stage.plays; p; p = p->next) {
        if (p->waits)
            play_later(p);
    }
}

static void stop_waiting(void *arg)
{
    stage.hurry = true;
    continue_plays(arg);
}

static void server_stop(struct fuzz_server *s)
{
    dgm_loop_post(dgm_loops_at(s->loops, 0), stop_waiting, NULL);
    dgm_http_server_drain(s->http, DRAIN_MS, on_reached, s);
    dgm_core_drain(s->core, DRAIN_MS, on_reached, s);
    sem_wait(&s->done);
    sem_wait(&s->done);
    dgm_loops_stop(s->loops);
    dgm_core_stop(s->core);
    dgm_store_close(s->store);
    dgm_loops_free(s->loops);
    dgm_http_server_free(s->http);
    dgm_core_free(s->core);
    dgm_router_free(s->router);
    dgm_agents_free(s->opened);
    for (size_t i = 0; i < 2; i++)
        played_backend.close(s->agents[i].agent);
    sem_destroy(&s->done);
}

/* ---- its clients ------------------------------------------------------------------------------------------------ */

struct client {
    struct fuzz_server *server;
    int fds[MAX_CONNS]; /* -1: closed */
    bool has_read[MAX_CONNS];
    size_t next;
    dgm_buf headers; /* of the next request */
    bool is_bob;
    size_t cut; /* of the next request; 0: it is sent whole */
    dgm_buf request;
    char ids[7][80]; /* see id_marks */
};

static const struct {
    const char *mark;
    char name;
    bool is_part; /* the mark is part of the id */
} id_marks[7] = {{"resp_", 'R', true},
                 {"msg_", 'M', true},
                 {"Task-Id: ", 'T', false},
                 {"Context-Id: ", 'C', false},
                 {"conv_", 'V', true},
                 {"file-", 'F', true},
                 {"interruptId\":\"", 'I', false}};

static bool is_id_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static void note_ids(struct client *c, const char *p, size_t n)
{
    for (size_t i = 0; i < 7; i++) {
        size_t mark_n = strlen(id_marks[i].mark), k = 0;
        const char *at = memmem(p, n, id_marks[i].mark, mark_n);
        if (!at)
            continue;
        at += id_marks[i].is_part ? 0 : mark_n;
        while (k < sizeof c->ids[i] - 1 && at + k < p + n && is_id_char(at[k]))
            k++;
        memcpy(c->ids[i], at, k);
        c->ids[i][k] = 0;
    }
}

static void put_filled(struct client *c, dgm_buf *out, dgm_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        size_t k = 0;
        while (text.p[i] == '$' && i + 1 < text.n && k < 7 && id_marks[k].name != text.p[i + 1])
            k++;
        if (text.p[i] != '$' || i + 1 == text.n || k == 7) {
            dgm_buf_add_char(out, text.p[i]);
            continue;
        }
        dgm_buf_add_str(out, dgm_str_from(c->ids[k]));
        i++;
    }
}

static void trace(const char *arrows, size_t at, dgm_str bytes)
{
    if (getenv("FUZZ_TRACE")) {
        fprintf(stderr, "\n%s %zu: ", arrows, at);
        fwrite(bytes.p, 1, bytes.n, stderr);
    }
}

static void client_reset(struct client *c, size_t at)
{
    struct linger now = {.l_onoff = 1};
    if (c->fds[at] < 0)
        return;
    setsockopt(c->fds[at], SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(c->fds[at]);
    c->fds[at] = -1;
}

/* False: there is nothing now. */
static bool client_read(struct client *c, size_t at, size_t most)
{
    static char bytes[64 << 10];
    if (c->fds[at] < 0 || !most)
        return false;
    ssize_t n = recv(c->fds[at], bytes, most < sizeof bytes ? most : sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0) {
        client_reset(c, at);
        return false;
    }
    if (!c->has_read[at]) { /* the status line comes in one piece */
        must(n < 12 || !memcmp(bytes, "HTTP/1.1 ", 9));
        must(n < 12 || memcmp(bytes + 9, "500", 3) != 0);
    }
    c->has_read[at] = true;
    trace("<<", at, (dgm_str){bytes, (size_t)n});
    note_ids(c, bytes, (size_t)n);
    return true;
}

/* Waits for room while the server reads. */
static void client_send(struct client *c, int fd, const char *p, size_t n)
{
    for (int tries = 0; n && tries < 1000;) {
        ssize_t sent = send(fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
            return; /* it was answered before it was read */
        if (sent < 0) {
            server_settle(c->server);
            tries++;
            continue;
        }
        p += sent;
        n -= (size_t)sent;
    }
}

static bool is_line(dgm_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\r' || s.p[i] == '\n' || s.p[i] == 0)
            return false;
    }
    return true;
}

static void client_request(struct client *c, const char *method, dgm_str path, dgm_str body)
{
    size_t at = c->next++ % MAX_CONNS;
    dgm_buf filled, *out = &c->request;
    client_reset(c, at);
    c->has_read[at] = false;
    if (!is_line(path))
        return;
    dgm_buf_init(&filled, SIZE_MAX);
    put_filled(c, &filled, body);
    dgm_buf_clear(out);
    dgm_buf_printf(out, "%s ", method);
    put_filled(c, out, path);
    dgm_buf_printf(out,
                   " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: "
                   "%zu\r\nContent-Type: application/json\r\nConnection: close\r\n",
                   c->is_bob ? "bob" : "alice", filled.n);
    dgm_buf_add_str(out, dgm_buf_str(&c->headers));
    dgm_buf_add_lit(out, "\r\n");
    dgm_buf_add_str(out, dgm_buf_str(&filled));
    dgm_buf_done(&filled);
    c->fds[at] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(!connect(c->fds[at], (struct sockaddr *)&address, sizeof address));
    trace(">>", at, dgm_buf_str(out));
    client_send(c, c->fds[at], out->p, c->cut && c->cut < out->n ? c->cut : out->n);
    server_settle(c->server);
    if (c->cut)
        client_reset(c, at);
    dgm_buf_clear(&c->headers);
    c->is_bob = false;
    c->cut = 0;
}

static void read_rest(struct client *c)
{
    dgm_loop_post(dgm_loops_at(c->server->loops, 0), stop_waiting, NULL);
    for (int round = 0, idle = 0; round < 2000 && idle < 3; round++) {
        bool any = false;
        server_settle(c->server);
        for (size_t i = 0; i < MAX_CONNS; i++) {
            while (client_read(c, i, SIZE_MAX))
                any = true;
        }
        idle = any ? 0 : idle + 1;
    }
    for (size_t i = 0; i < MAX_CONNS; i++)
        client_reset(c, i);
}

/* ---- the input ---------------------------------------------------------------------------------------------------- */

static dgm_str next_line(dgm_str *rest)
{
    const char *end = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
    dgm_str l = {rest->p, end ? (size_t)(end - rest->p) : rest->n};
    *rest = (dgm_str){rest->p + l.n + (end != NULL), rest->n - l.n - (end != NULL)};
    return l;
}

static size_t number(dgm_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n && s.p[i] >= '0' && s.p[i] <= '9' && n < 1000000; i++)
        n = n * 10 + (size_t)(s.p[i] - '0');
    return n;
}

/* Before the server runs: reads all scripts of the agent. */
static void read_scripts(dgm_str rest)
{
    struct script *s = NULL;
    memset(&stage, 0, sizeof stage);
    while (rest.n) {
        dgm_str line = next_line(&rest);
        if (line.n && line.p[0] == 'A')
            s = stage.n_scripts < MAX_SCRIPTS ? &stage.scripts[stage.n_scripts++] : NULL;
        else if (line.n && line.p[0] == '|' && s && s->n < MAX_SCRIPT_STEPS)
            s->steps[s->n++] = (dgm_str){line.p + 1, line.n - 1};
    }
}

static void play_step(struct client *c, dgm_str line, dgm_str *rest)
{
    dgm_str word = {line.p + 1, line.n - 1};
    size_t at = word.n ? (size_t)(word.p[0] - '0') % MAX_CONNS : 0;
    dgm_str behind = {word.p + 1, word.n ? word.n - 1 : 0};
    switch (line.p[0]) {
    case 'P': client_request(c, "POST", word, next_line(rest)); break;
    case 'G': client_request(c, "GET", word, (dgm_str){0}); break;
    case 'D': client_request(c, "DELETE", word, (dgm_str){0}); break;
    case 'h':
        if (is_line(word) && c->headers.n < 4096) {
            put_filled(c, &c->headers, word);
            dgm_buf_add_lit(&c->headers, "\r\n");
        }
        break;
    case 'b': c->is_bob = true; break;
    case 'k': c->cut = number(word); break;
    case 'r': client_read(c, at, number(behind)); break;
    case 'x': client_reset(c, at); break;
    case 'f':
        if (c->fds[at] >= 0)
            shutdown(c->fds[at], SHUT_WR);
        break;
    case 'g':
        dgm_loop_post(dgm_loops_at(c->server->loops, 0), continue_plays, NULL);
        server_settle(c->server);
        break;
    case 'y': server_settle(c->server); break;
    default: break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_str rest = {(const char *)data, size}, first = next_line(&rest);
    struct fuzz_server server = {0};
    struct client c = {.server = &server, .fds = {-1, -1, -1, -1}};
    if (!dgm_str_is(first, "frontend"))
        return 0;
    prepare();
    read_scripts(rest);
    dgm_buf_init(&c.headers, SIZE_MAX);
    dgm_buf_init(&c.request, SIZE_MAX);
    server_start(&server);
    for (size_t n = 0; rest.n && n < MAX_STEPS; n++) {
        dgm_str line = next_line(&rest);
        if (line.n)
            play_step(&c, line, &rest);
    }
    read_rest(&c);
    server_stop(&server);
    dgm_buf_done(&c.headers);
    dgm_buf_done(&c.request);
    return 0;
}
