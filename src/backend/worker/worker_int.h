/*
 * backend/worker/worker_int.h - what the files of this folder share.
 *
 *   worker_pool.c     the pool: its processes, starting and ending all of them
 *   worker_process.c  one process: handshake, heartbeat, faults, restarts, its end
 *   worker_lines.c    the lines that it writes: responses, events, requests
 *   worker_queue.c    on the home loop: runs and calls that wait for the process, and those that it works on
 *   worker_run.c      on the loop of a run: its callbacks in order, back-pressure, time limits
 *   worker_call.c     other requests to the worker; answers to requests of the worker
 *   worker_log.c      lines for the operator's log
 *   worker_watch.c    files that are watched (serve --watch)
 *   worker_params.c   members that every `run` has
 *   worker_card.c     members of the agent card
 *
 * Two loops: an item (a run or a call) has members that belong to its own loop and members that belong to the home loop of
 * its slot. Each side has a reference; so has everything that is on its way between them.
 */
#pragma once

#include "backend/backend_int.h"
#include "backend/program.h"
#include "backend/worker/worker.h"
#include "base/table.h"
#include "net/process.h"

#include <pthread.h>
#include <stdatomic.h>

#define WORKER_TAIL_LINES 64
#define WORKER_FAILED_STARTS 5 /* within WORKER_FAILED_MS: the agent is unavailable */
#define WORKER_FAILED_MS 60000

/* The result of a handshake. Immutable. */
struct worker_info {
    _Atomic unsigned refs;
    dgm_arena *arena; /* it is in it, too */
    const dgm_json *result;
    size_t max_runs;
    bool can_input;
};

struct worker_slot;

enum worker_item_kind { WORKER_RUN, WORKER_CALL };
enum worker_item_place { WORKER_NOWHERE, WORKER_WAITING, WORKER_SENT };

/* The head of a run and of a call. */
struct worker_item {
    _Atomic unsigned refs;
    enum worker_item_kind kind;
    struct worker_slot *slot;
    dgm_loop *loop;
    uint64_t number; /* the id of its JSON-RPC request; a run is called "r<number>" */
    uint64_t thread; /* a hash */
    _Atomic bool is_sent;
    _Atomic size_t n_held; /* bytes of events that its owner has not received */

    /* On its own loop: */
    bool is_over; /* no callback follows */

    /* On the home loop: */
    enum worker_item_place place;
    dgm_table_node node;      /* in slot->sent */
    struct worker_item *next; /* in slot->waiting */
    dgm_fence *fence;         /* NULL: what it stores is not checked */
    char *line;               /* of the request; NULL: its params are not written yet */
    size_t n_line;
    bool is_requested; /* its params */
    bool is_canceled;  /* the worker was notified */
    bool is_ignored;   /* its owner wants no more of it */
    bool is_slow;      /* the channel was paused for it in vain */
    uint64_t next_seq;
    struct worker_input *inputs; /* messages to the run, until it is sent */
};

struct worker_input {
    struct worker_input *next;
    size_t n;
    char line[];
};

enum worker_delivery_kind {
    WORKER_ON_READY, /* info */
    WORKER_ON_EVENT,
    WORKER_ON_LOG,     /* event.type: the level; fault.message: the text */
    WORKER_ON_REQUEST, /* request */
    WORKER_ON_RESULT,
    WORKER_ON_FAULT
};

/* Something for the owner of an item, on its way to the item's loop. */
struct worker_delivery {
    struct worker_delivery *next;
    enum worker_delivery_kind kind;
    struct worker_item *item;
    dgm_arena *arena; /* of its texts; NULL: none. A request has its own */
    size_t bytes;     /* counted in n_held */
    dgm_worker_event event;
    dgm_worker_fault fault;
    dgm_worker_request *request;
    const dgm_json *result;
    struct worker_info *info;
};

struct dgm_worker_run {
    struct worker_item item;
    char id[24];
    dgm_worker_run_handler handler;
    bool can_input, is_canceled;
    uint64_t started_ms;                  /* of the loop */
    struct worker_delivery *first, *last; /* that wait for room */
    dgm_timer room, limit;
};

struct dgm_worker_call {
    struct worker_item item;
    dgm_worker_on_answer on_answer;
    void *user;
    dgm_timer limit;
};

enum worker_state {
    WORKER_DOWN,     /* there is no process */
    WORKER_STARTING, /* until the handshake is answered */
    WORKER_READY,
    WORKER_STOPPING, /* `shutdown` was sent */
    WORKER_KILLED
};

/* A place for a process and its successors. */
struct worker_slot {
    dgm_worker_pool *pool;
    size_t index;
    /* Under pool->lock: */
    dgm_loop *home;           /* set once */
    struct worker_info *info; /* of a process that is ready */
    bool is_alive;            /* there is a process */

    /* On the home loop: */
    bool is_open;
    enum worker_state state;
    dgm_process *process;
    uint64_t generation; /* of the process */
    void *session;       /* of the service */
    dgm_arena *arena;    /* of the line that is being read */
    dgm_table sent;
    size_t n_runs, max_runs; /* sent, also those that are ignored */
    struct worker_item *waiting;
    size_t n_waiting, waiting_bytes;
    size_t n_requests; /* of the worker, not answered */
    uint64_t init_number, ping_number, stop_number;
    uint64_t line_ms;      /* when it wrote its last line */
    bool is_suspect;       /* it was silent for too long, a moment ago */
    unsigned n_missed;     /* pings */
    dgm_timer start_timer; /* limit of the handshake; then the backoff */
    dgm_timer tick;        /* heartbeat */
    dgm_timer stop_timer;  /* grace of `shutdown`; limit of a reload */
    dgm_timer pause_timer;
    struct worker_item *paused_for;
    uint64_t paused_ms; /* since when */
    dgm_loop_stop stop;
    uint64_t started_ms, ready_ms, failed_ms[WORKER_FAILED_STARTS];
    unsigned n_ends;         /* in a row, that were not asked for */
    const char *unavailable; /* why runs fail at once, for callers; NULL: they do not */
    bool wants_reload;       /* a new process when the runs of this one have ended */
    bool is_closing;         /* no more runs */
    bool is_ending;          /* we have asked the process to end */
    bool is_deaf;            /* the process has closed its channel */
    char why[320];           /* it was killed, or cannot be started; "" */
    bool is_load_error;
    char *tail[WORKER_TAIL_LINES]; /* last lines of its log; a ring */
    size_t n_tail;
    uint64_t log_ms; /* start of the second whose lines are counted */
    size_t n_logged, n_dropped;
};

struct dgm_worker_pool {
    dgm_arena *arena;
    dgm_worker_options options;
    dgm_agent_options agent;
    const char **env; /* with DRAGOMAN_FD */
    uint64_t ping_ms, start_ms, hang_ms, grace_ms;
    _Atomic uint64_t n_numbers;
    _Atomic bool is_retired; /* a process without runs ends */
    pthread_mutex_t lock;
    struct worker_info *described; /* of the last handshake, also after its process has ended */
    pthread_cond_t changed;        /* is_alive of a slot */
    struct worker_slot *slots;
    size_t n_slots;
    struct worker_watch *watch; /* on the home loop of the first slot */
};

/* ---- worker_pool.c */

/* The slot of a thread; its home is `loop` if it has none yet. */
struct worker_slot *dgm_worker_slot_for(dgm_worker_pool *p, dgm_loop *loop, uint64_t thread);
struct worker_info *
dgm_worker_info_get(struct worker_slot *s);           /* a reference; NULL: it is not ready */
void dgm_worker_info_unref(struct worker_info *info); /* NULL is allowed */
void dgm_worker_slot_set_info(struct worker_slot *s, struct worker_info *info);
void dgm_worker_slot_set_alive(struct worker_slot *s, bool is_alive);
/* Runs fn(item, text) on the home loop, at once if this is it. text is copied. The item is retained until then. */
void dgm_worker_go_home(struct worker_item *item,
                        void (*fn)(struct worker_item *item, dgm_str text), dgm_str text);

/* ---- worker_process.c: on the home loop */

void dgm_worker_slot_open(
    struct worker_slot *s); /* registers it with the loop; fine when it is open */
void dgm_worker_slot_start(
    struct worker_slot *s); /* a process; a no-op if there is one, or the backoff runs */
void dgm_worker_slot_reload(struct worker_slot *s);
void dgm_worker_slot_close(struct worker_slot *s); /* no more runs: shutdown, SIGTERM, SIGKILL */
/* Ends the process for a fault of its own. */
void dgm_worker_slot_kill(struct worker_slot *s, const char *fmt, ...) DGM_PRINTF(2, 3);
void dgm_worker_slot_send(struct worker_slot *s, dgm_str line); /* with its newline */
void dgm_worker_slot_on_init(struct worker_slot *s, const dgm_json *response);
/* A run has ended: reloads and retires happen between runs. */
void dgm_worker_slot_check_idle(struct worker_slot *s);

/* ---- worker_lines.c */

void dgm_worker_on_line(void *slot, dgm_str line, dgm_line_end end);

/* ---- worker_queue.c: on the home loop, except dgm_worker_item_unref */

void dgm_worker_item_init(struct worker_item *i, enum worker_item_kind kind, dgm_worker_pool *p,
                          dgm_loop *loop, dgm_str thread); /* with one reference, the owner's */
void dgm_worker_item_unref(struct worker_item *i);
/* For dgm_worker_go_home. text: the whole line, or empty: params follow. */
void dgm_worker_item_enqueue(struct worker_item *i, dgm_str line);
void dgm_worker_item_set_line(struct worker_item *i, dgm_str line);
void dgm_worker_item_cancel(struct worker_item *i, dgm_str unused);
void dgm_worker_item_drop(struct worker_item *i, dgm_str unused);
void dgm_worker_item_input(struct worker_item *i, dgm_str message);
/* Sends what can be sent. */
void dgm_worker_queue_pump(struct worker_slot *s);
/* The process is ready: items without params are asked for them. */
void dgm_worker_queue_ready(struct worker_slot *s, struct worker_info *info);
struct worker_item *dgm_worker_queue_find(struct worker_slot *s, uint64_t number);
/* A response to it, or a fault: it is out of the queue. The arena of the line may be taken (s->arena). */
void dgm_worker_queue_finish(struct worker_slot *s, struct worker_item *i,
                             const dgm_json *response);
/* It sent something that it must not: only this run ends. */
void dgm_worker_queue_fail_item(struct worker_slot *s, struct worker_item *i,
                                dgm_worker_fault_kind kind, const char *safe, const char *detail);
void dgm_worker_queue_lose_sent(struct worker_slot *s, const char *safe, const char *detail);
void dgm_worker_queue_fail_waiting(struct worker_slot *s, const char *safe, const char *detail);
/* An event or a request was added to n_held. */
void dgm_worker_queue_check_room(struct worker_slot *s, struct worker_item *i);
void dgm_worker_queue_end_pause(struct worker_slot *s);
void dgm_worker_queue_on_pause(void *slot); /* of pause_timer */

/* ---- worker_run.c */

struct worker_delivery *dgm_worker_delivery_new(struct worker_item *i, dgm_arena *a,
                                                enum worker_delivery_kind kind);
/* To the loop of the item. is_direct: at once, if this is it. */
void dgm_worker_deliver(struct worker_delivery *d, bool is_direct);
/* True: the owner has received the event, nothing was allocated. Only on the item's loop. */
bool dgm_worker_run_receive_at_once(dgm_worker_run *r, const dgm_worker_event *event);
void dgm_worker_call_receive(dgm_worker_call *c, const struct worker_delivery *d);
void dgm_worker_item_free(struct worker_item *i); /* no reference is left */

/* ---- worker_call.c */

/* A request of the worker to its handler. Takes the arena. */
dgm_worker_request *dgm_worker_request_new(struct worker_slot *s, dgm_arena *a,
                                           const dgm_json *line);

/* ---- worker_log.c */

void dgm_worker_log(struct worker_slot *s, bool is_fault, const char *fmt, ...) DGM_PRINTF(3, 4);
/* Each line of a text as a line of the log. */
void dgm_worker_log_text(struct worker_slot *s, bool is_fault, dgm_str text);
void dgm_worker_on_log_line(void *slot, dgm_str line, dgm_line_end end); /* of stdout and stderr */
dgm_str dgm_worker_tail(struct worker_slot *s, dgm_arena *a);
void dgm_worker_tail_clear(struct worker_slot *s);

/* ---- worker_watch.c */

void dgm_worker_watch_open(dgm_worker_pool *p,
                           dgm_loop *loop); /* on this loop; it is closed with it */
