/*
 * backend/a2a/a2a_int.h - what the files of this folder share.
 *
 *   a2a_agent.c  settings, the type
 *   a2a_card.c   the agent card: fetched, cached, shared by the runs of all loops
 *   a2a_job.c    one run: which request follows which
 *   a2a_send.c   the requests themselves, and what is stored about a remote task
 *   a2a_show.c   events of the remote task to events of ours, each one once
 */
#pragma once

#include "backend/remote/remote.h"
#include "base/map.h"
#include "base/mint.h"
#include "model/reconcile.h"
#include "wire/a2a/a2a_peer.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- the agent ---------------------------------------------------------------------------------------------------------- */

struct a2a_card;

struct a2a_settings {
    dgm_remote remote;
    int protocol, binding, card, resend; /* indexes of their choices; card 1: none */
    dgm_str extensions;
    double reconnect_timeout;
};

struct a2a_agent {
    struct a2a_settings set;
    dgm_arena *arena;
    dgm_str token;          /* of token_env; empty: none */
    bool has_own_header;    /* token_header is set: the card does not choose it */
    bool answer_in_status;  /* texts of working statuses are handled by the run (shaped.c) */
    atomic_bool cumulative; /* it was seen to repeat its text in working statuses */
    pthread_mutex_t lock;   /* of the two below */
    struct a2a_card *card;  /* NULL: not fetched yet */
    bool refreshing;        /* a run fetches it again; others use the old one */
};

/* ---- the card (a2a_card.c) ------------------------------------------------------------------------------------------------ */

#define A2A_MAX_INTERFACES 8 /* of a card; more are not tried */

/* What a card says about calls. Immutable but for the atomic members. */
struct a2a_card {
    dgm_arena *arena;
    atomic_size_t refs;
    dgm_a2a_peer peers[A2A_MAX_INTERFACES]; /* its interfaces that we can use, the best first */
    size_t n_peers;
    atomic_size_t
        preferred;     /* the one that runs start with: those before it could not be reached */
    dgm_remote remote; /* that of the settings, with the credential as the card wants it */
    bool streams;
    bool has_extended; /* there is another card for callers with a credential */
    dgm_str etag;
    atomic_llong fresh_until; /* Unix milliseconds */
};

void dgm_a2a_card_unref(struct a2a_card *c); /* NULL is fine */
/* After a failure: the next run fetches it again. */
void dgm_a2a_card_expire(struct a2a_card *c);

struct a2a_fetch; /* the card is being fetched */
/* card: a reference for the caller; NULL: error is a sentence. */
typedef void (*a2a_on_card)(void *arg, struct a2a_card *card, const char *error);
/* The cached card if it is fresh: a reference. NULL: call dgm_a2a_card_fetch. */
struct a2a_card *dgm_a2a_card_cached(struct a2a_agent *x);
struct a2a_fetch *dgm_a2a_card_fetch(struct a2a_agent *x, dgm_run *run, a2a_on_card on_card,
                                     void *arg);
void dgm_a2a_card_fetch_cancel(struct a2a_fetch *f);

/* ---- events (a2a_show.c) -------------------------------------------------------------------------------------------------- */

/* An artifact as far as it was emitted. */
struct a2a_shown {
    dgm_str id;     /* ours */
    dgm_sum sum;    /* its parts: see show_put_parts */
    bool is_open;   /* a text without its last chunk */
    bool is_sealed; /* its last chunk was emitted */
    bool is_live;   /* the text of working statuses */
    bool is_before; /* of an earlier turn, and not touched in this one */
    unsigned round; /* the connection in which it was seen last */
    dgm_sum first;  /* its first update; n == 0: not known */
    bool is_again;  /* the agent repeats it from its start: `again` is how far */
    dgm_sum again;
};

#define A2A_MESSAGES_SEEN 256

struct a2a_show {
    dgm_run *run;
    dgm_arena *arena; /* as long as the run */
    atomic_bool *cumulative;
    bool answer_in_status;
    struct a2a_shown *artifacts;
    size_t n, cap;
    dgm_map by_id; /* the agent's ids, and ours of texts in statuses */
    dgm_task_state state;
    unsigned round; /* counts connections */
    uint64_t *seen; /* hashes of messages in statuses, the last ones; NULL before the first */
    size_t n_seen;
    /* a text in a working status: is it progress, or the beginning of an answer? */
    dgm_arena *held_arena;
    dgm_status_update held;
    dgm_buf prior; /* its text, also after it was emitted */
    bool is_held, has_prior;
    dgm_timer hold;
    /* an answer in working statuses, each of which repeats it: index of its artifact; SIZE_MAX: none */
    size_t live;
    size_t n_live; /* for their ids */
};

void dgm_a2a_show_init(struct a2a_show *s, dgm_run *run, dgm_arena *a,
                       const struct a2a_agent *agent);
void dgm_a2a_show_done(struct a2a_show *s); /* but for the timer, which the caller closes */
/* The events that follow may repeat what was emitted. */
void dgm_a2a_show_reconnected(struct a2a_show *s);
/* An event, not a message. A failure of the core's emit is returned. */
dgm_code dgm_a2a_show_event(struct a2a_show *s, const dgm_event *event, dgm_err *err);
/* A progress text that is held back is emitted. */
dgm_code dgm_a2a_show_flush(struct a2a_show *s, dgm_err *err);
/* The last chunks of texts that are open: before a state of ours that ends the task. */
dgm_code dgm_a2a_show_close_texts(struct a2a_show *s, dgm_err *err);
/* A message without the ids of the agent. */
dgm_message dgm_a2a_show_clean(const dgm_message *m);

/* ---- one run (a2a_job.c, a2a_send.c) -------------------------------------------------------------------------------------- */

enum a2a_step {
    A2A_RECALL,
    A2A_CARD,
    A2A_SEND,   /* the message */
    A2A_FOLLOW, /* a subscription */
    A2A_GET,    /* GetTask */
    A2A_WAIT,   /* until the next request */
    A2A_CANCEL, /* CancelTask */
    A2A_ENDED
};

/* What is stored about a remote task; the texts are in the job's arena. */
struct a2a_note {
    dgm_str task, context;
    dgm_str message; /* the last message that the remote task got */
    /* What else is sent with a message that may have to be sent again after a restart; absent: nothing. */
    dgm_str request; /* the id of this message */
    const dgm_json *metadata;
    dgm_strs output_modes;
};

struct a2a_job {
    dgm_run *run;
    struct a2a_agent *agent;
    struct a2a_card *card;
    const dgm_a2a_peer *peer; /* of the card: the interface in use */
    size_t n_refused;         /* interfaces that the message did not get to */
    const char *refusal;      /* why not, of the first one */
    struct a2a_fetch *fetch;
    dgm_arena *arena; /* of the run */
    dgm_a2a_answers answers;
    dgm_mint mint;
    enum a2a_step step, next; /* next: after A2A_WAIT */
    dgm_remote_call *call;
    dgm_timer timer, limit; /* waits between requests; the run in all, or a cancel */
    dgm_loop_stop stop;
    unsigned n_closing; /* timers */
    struct a2a_show show;

    dgm_str message_id;  /* of our message there */
    dgm_message message; /* a copy to send; in the arena */
    const dgm_json *metadata;
    dgm_strs output_modes;
    bool continues; /* the message continues `note.task` */
    struct a2a_note note;
    dgm_buf last_event; /* id of the last event of a stream */

    /* of the current call */
    size_t n_items;
    bool is_first;          /* its next event is the first one */
    bool is_alone;          /* its answer is not a stream */
    const char *bad;        /* an answer that cannot be read: why */
    const char *peer_error; /* the agent reported an error: a sentence */
    dgm_code peer_code;

    bool no_stream;       /* it refused to stream */
    bool no_subscribe;    /* likewise */
    bool card_was_cached; /* a failure may be the fault of an old card */
    int64_t n_resent;
    uint64_t lost_since; /* ms of the loop; 0: not lost */
    uint64_t wait_ms;    /* between polls */
    const char *pending; /* the task fails with this, unless GetTask reports its end */
    const char *failure; /* the task fails with this after A2A_CANCEL; NULL: it is canceled */
    bool is_canceling;
};

#define A2A_POLL_MIN_MS 500
#define A2A_POLL_MAX_MS 5000
/* Below DGM_CANCEL_WAIT_MS, so that whoever cancels gets a canceled task. */
#define A2A_CANCEL_MS 4500

/* A request to an interface of a card. */
struct a2a_operation {
    const dgm_remote *remote; /* of the card */
    const dgm_a2a_peer *peer;
    dgm_method method;
    void *params;          /* the struct that DGM_METHODS names */
    dgm_str last_event;    /* of a subscription; may be empty */
    size_t max_bytes;      /* see dgm_remote_request */
    double answer_timeout; /* likewise */
};
/* NULL: it cannot be written. */
dgm_remote_call *dgm_a2a_call(const struct a2a_agent *x, dgm_run *run,
                              const struct a2a_operation *o, dgm_remote_handler handler,
                              dgm_err *err);
/* Starts a request of the job for this operation. Returns NULL, or why it cannot be written. */
const char *dgm_a2a_request(struct a2a_job *j, dgm_method method, enum a2a_step step,
                            dgm_remote_handler handler);
/* Copies what is sent of the caller's message: without our metadata and ids. */
void dgm_a2a_copy_message(struct a2a_job *j);
/* Notes as JSON. Empty: it is larger than DGM_MAX_NOTE_BYTES. */
dgm_str dgm_a2a_write_note(dgm_arena *a, const struct a2a_note *note, const dgm_a2a_peer *peer);
struct a2a_note dgm_a2a_read_note(dgm_arena *a, dgm_str text);
/* "the agent's server rejected the request: ..." */
const char *dgm_a2a_error_sentence(dgm_arena *a, const dgm_peer_error *e);

void dgm_a2a_start(void *agent, dgm_run *run);
void dgm_a2a_cancel(void *agent, dgm_run *run);
