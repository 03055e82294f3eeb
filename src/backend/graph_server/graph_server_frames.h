/*
 * backend/graph_server/graph_server_frames.h - frames of a LangGraph server to the events that workers send (docs/worker-protocol.md).
 *
 * Pure: bytes in, events out. A server sends the events of a run in one of two forms:
 *   runs  `event: messages|ns`, `values`, `updates`, `custom`, `error`, `metadata`: LangGraph's stream modes as they are
 *   v2    {type: event, seq, method, params: {namespace, data}}: messages as content blocks, `input.requested`, `lifecycle`
 * Both become the events `messages`, `custom`, `updates`, and at the end the result of the run, as a worker reports it.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "model/reconcile.h"
#include "wire/frames/frames.h"
#include "json/json.h"

/* ---- each frame once ------------------------------------------------------------------------------------------------------- */

/* How many frames of one id, and of one v2 run, are compared with those of an earlier connection. */
#define GSERVER_MAX_SAME_ID 256
#define GSERVER_MAX_SEEN 65536

/*
 * runs: ids grow, but frames of the same millisecond may share one id (the development server). A join therefore asks for all
 * frames behind the id before the last one, and skips those that were handled.
 * v2: a connection may repeat the run from its first event. Events are recognised by their content, in order.
 */
struct gserver_seen {
    dgm_buf last, before; /* ids: of the last frame; of the last frame with another one */
    uint64_t hashes[GSERVER_MAX_SAME_ID]; /* of the frames with the id `last` */
    size_t n_hashes;
    bool is_again; /* not the first connection */
    /* v2 */
    uint64_t *events; /* hashes, in order; malloc'ed */
    size_t n_events, cap_events,
        next_event; /* next_event: the one that is expected to be repeated */
    bool is_full;   /* too many events: no longer recognised */
};

void dgm_gserver_seen_init(struct gserver_seen *s);
void dgm_gserver_seen_done(struct gserver_seen *s);
/* Another connection: it may repeat. */
void dgm_gserver_seen_reconnect(struct gserver_seen *s);
/* Was this frame handled on an earlier connection? */
bool dgm_gserver_seen_frame(struct gserver_seen *s, const dgm_frames_item *item);
bool dgm_gserver_seen_event(struct gserver_seen *s, dgm_str method, const dgm_json *params);
/* For the header Last-Event-ID of a join. */
dgm_str dgm_gserver_seen_cursor(const struct gserver_seen *s);

/* ---- events ---------------------------------------------------------------------------------------------------------------- */

#define GSERVER_MAX_OPEN                                                                           \
    64 /* messages that stream at the same time (v2), in different namespaces */
#define GSERVER_MAX_INTERRUPTS 256 /* pending ones of a thread */

/* A worker's event: type messages, custom or updates. ns: the path of the graph that it comes from, may be NULL. Both are valid
 * until the callback returns. */
typedef dgm_code (*gserver_on_event)(void *arg, dgm_str type, const dgm_json *ns,
                                     const dgm_json *data, dgm_err *err);

enum gserver_frame_end {
    GSERVER_GOES_ON,
    GSERVER_STARTED,  /* v2: the first event of the run */
    GSERVER_OVER,     /* v2: the last event of the run; runs: an error, or `end` */
    GSERVER_GAP,      /* v2: events are no longer available; gap_seq: the first one that is */
    GSERVER_OTHER_RUN /* v2: another run has started */
};

struct gserver_open_message; /* v2 */

struct gserver_frames {
    dgm_arena *arena;   /* as long as this */
    dgm_arena *scratch; /* of one frame */
    gserver_on_event on_event;
    void *arg;
    dgm_str message_id; /* of the message that the run got */
    dgm_str run_id;     /* v2; set it before the first frame */
    struct gserver_seen seen;
    /* what is known about the state */
    dgm_buf values;   /* the last one of the graph itself; empty: none yet */
    bool is_complete; /* ... was the last frame: a run ends with its state */
    bool has_old;     /* old_ids has those of the first state of the run */
    dgm_map old_ids;
    dgm_buf interrupts; /* objects {id, value}, separated by commas */
    dgm_map interrupt_ids;
    size_t n_interrupts;
    bool is_interrupted; /* it waits for an answer, or at a breakpoint */
    bool has_error;
    dgm_str error_type, error_text;
    dgm_str metadata_run; /* run_id of the frame `metadata` */
    /* v2 */
    bool is_started;
    int64_t first_seq, last_seq, gap_seq;
    struct gserver_open_message *open;
    size_t n_open;
};

void dgm_gserver_frames_init(struct gserver_frames *f, gserver_on_event on_event, void *arg);
void dgm_gserver_frames_done(struct gserver_frames *f);
/* One frame of a runs stream, or of a v2 stream. Errors: of the callback, and of frames that are not JSON. */
dgm_code dgm_gserver_frames_add(struct gserver_frames *f, const dgm_frames_item *item,
                                enum gserver_frame_end *ret_end, dgm_err *err);
dgm_code dgm_gserver_frames_add_v2(struct gserver_frames *f, const dgm_frames_item *item,
                                   enum gserver_frame_end *ret_end, dgm_err *err);
/* The answer to GET /threads/{id}/state: replaces the state that the frames had. next: may be NULL. */
void dgm_gserver_frames_state(struct gserver_frames *f, const dgm_json *state,
                              const dgm_json **ret_next, dgm_arena *a);
void dgm_gserver_frames_add_interrupts(struct gserver_frames *f, const dgm_json *list);
/* The result of the run, as a worker reports it, in the arena. status: completed or interrupted. next: may be NULL. NULL: the
 * state is larger than object_bytes. */
const dgm_json *dgm_gserver_frames_result(struct gserver_frames *f, dgm_arena *a,
                                          const char *status, const dgm_json *next);
