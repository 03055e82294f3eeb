/* app/client/client_int.h - declarations that the files of this folder share. */
#pragma once

#include "app/client/client.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "model/approval.h"
#include "model/text_pieces.h"
#include "net/client.h"
#include "wire/a2a/a2a_peer.h"

/* ---- HTTP (client_http.c) ---------------------------------------------------------------------------- */

struct http; /* a loop with a client of net/client.h */

struct http_settings {
    long timeout_s;      /* without data */
    const char *ca_file; /* certificates to trust instead of this machine's; NULL: those */
    const char *proxy;   /* its URL; empty: none; NULL: that of the environment */
};

struct http_request {
    const char *method; /* "GET", "POST" */
    const char *url;
    dgm_str body;               /* absent: none */
    const char *const *headers; /* "Name: value"; ends with NULL */
    bool follows;               /* redirects within the origin of the URL */
    void (*on_head)(const dgm_fetch_head *head, void *arg); /* may be NULL */
    /* Bytes of a text/event-stream as they come; false ends it. NULL: kept in the answer as well. */
    bool (*on_stream)(const char *bytes, size_t n, void *arg);
    void (*on_tick)(void *arg); /* every 100 ms while nothing comes; may be NULL */
    void *arg;
};

struct http_answer {
    long status;
    bool is_stream;
    dgm_buf body; /* of what is no stream */
};

struct http *
dgm_client_http_new(const struct http_settings *settings); /* its texts are not copied */
void dgm_client_http_free(struct http *h);                 /* NULL is allowed */

/* DGM_OK: a response with any status. DGM_UNAVAILABLE: no response, err has the reason. */
dgm_code dgm_client_http_call(struct http *h, const struct http_request *q,
                              struct http_answer *ret_answer, dgm_err *err);
void dgm_client_http_response_done(struct http_answer *a);
void dgm_client_http_pause(struct http *h, unsigned ms); /* Ctrl-C ends it */

/* The first Ctrl-C ends the current call, the second one ends the program. */
void dgm_client_http_catch_interrupt(struct http *h);
bool dgm_client_http_was_interrupted(const struct http *h);
void dgm_client_http_release_interrupt(struct http *h); /* for the call that cancels the task */

/* ---- the other side (client_peer.c) --------------------------------------------------------------------- */

typedef struct peer {
    const dgm_cli_line *line;
    dgm_arena *arena;
    struct http *http;
    const char *address;         /* as it was typed */
    const char *card_url;        /* where the card was; NULL: none was fetched */
    bool card_is_of_host;        /* the host's card: the address itself had no card */
    const yyjson_val *card_json; /* as it came */
    const dgm_agent_card *card;
    dgm_a2a_peer at;      /* its interface */
    const char **headers; /* for every request; ends with NULL */
    /* Set before it is opened: sees the text of the card, whatever it is. */
    void (*on_card)(void *arg, const char *url, dgm_str text);
    void *on_card_arg;
} peer;

/* Reads the options, fetches the card if it is needed, chooses an interface. Prints its own errors; returns the exit
 * status, or DGM_CLI_OK. */
int dgm_peer_open(peer *p, const dgm_cli_line *line, const char *url);
/* The same without choosing an interface. */
int dgm_peer_open_card(peer *p, const dgm_cli_line *line, const char *url);
/* The same without a card: only the options, among them `timeout` and `header`. token: may be NULL. */
int dgm_peer_begin(peer *p, const dgm_cli_line *line, const char *url, const char *token,
                   struct http_settings settings);
void dgm_peer_close(peer *p);

/* The number in an option, within limits; prints an error if the value is not such a number. */
bool dgm_client_number(const dgm_cli_line *line, const char *option, long low, long high, long *to);

/* ---- calls (client_call.c) -------------------------------------------------------------------------------- */

/* One object of the answer: each event of a stream, else the only one. False ends the stream. It is valid
 * until the next one. event_id is absent if the event has no id. */
typedef bool (*peer_on_object)(const dgm_object *object, dgm_str event_id, void *arg);

struct peer_call {
    dgm_method method;
    void *params;           /* the struct that DGM_METHODS names */
    const char *last_event; /* Last-Event-ID; NULL: none */
    peer_on_object on_object;
    /* The bytes of the answer, before anybody looks at them. Then what cannot be read in a stream is passed
     * over. May be NULL. */
    void (*raw)(void *arg, const char *bytes, size_t n);
    void (*on_tick)(void *arg);
    void *arg;
};

/* DGM_OK: the answer is complete. A refusal of the server is err, with its code and a sentence. */
dgm_code dgm_peer_call(peer *p, const struct peer_call *call, dgm_err *err);

/* Prints err with a hint what to do. Returns an exit status. */
int dgm_peer_report_error(const peer *p, const dgm_err *err);

/* ---- what people see (client_show.c) -------------------------------------------------------------------------- */

struct show_text; /* of one artifact, as far as it was printed */

typedef struct show {
    bool json;
    bool is_calm; /* a task that failed is news like any other */
    bool out_is_tty, err_is_tty;
    dgm_arena *arena; /* ids below */
    dgm_str task_id, context_id;
    dgm_task_state state; /* UNKNOWN: not received yet */
    bool is_message;      /* answered without a task */
    struct show_text *texts, *current;
    dgm_text_pieces pieces; /* of texts in working statuses */
    struct show_text **status_texts, *speaker;
    size_t n_status_texts;
    bool printed, at_line_start;
    dgm_str progress; /* what the spinner says; empty: none */
    unsigned spin;
    bool spinning;
    dgm_str last_event;
    bool failed;                 /* standard output is gone */
    dgm_approval_requests asked; /* that the task waits for */
    dgm_str sign_in;             /* where; empty: unknown */
} show;

void dgm_show_init(show *s, bool json);
void dgm_show_done(show *s);
bool dgm_show_event(show *s, const dgm_event *e); /* false: standard output is closed */
void dgm_show_tick(void *arg);
void dgm_show_end(show *s); /* the last line ends, the spinner goes */
const char *dgm_show_state_name(dgm_task_state s);
/* One object as a line of A2A 1.0 JSON; pretty: over several lines. */
bool dgm_show_json(dgm_object_kind kind, const void *it, bool pretty);
bool dgm_show_is_settled(const show *s); /* a message, or a task that will not go on by itself */

/* ---- requests for approval (client_ask.c) ------------------------------------------------------------- */

/* Keeps what a status asks for. */
void dgm_client_note_question(show *s, const dgm_status *status);
/* Hints for a person, and how a script answers. */
void dgm_client_print_requests(const show *s, const char *address);
/* One line of standard input, cut at `room`. False: it has ended. */
bool dgm_client_read_line(char *line, size_t room);
/* Are there requests, and is there a terminal to ask at? */
bool dgm_client_can_ask(const show *s);
/* Asks about each request. False: standard input has ended. The message is in the arena and the show. */
bool dgm_client_ask(const show *s, dgm_arena *a, dgm_message *ret);
/* Parts of the options --approve and --reject; returns how many. There is room for all values of the line. */
size_t dgm_client_decision_parts(const dgm_cli_line *line, dgm_arena *a, dgm_part *parts);
/* On a terminal: asks about the requests for approval of the shown task, sends the decisions and shows the answer. status:
 * of the command so far; nothing is asked unless it is DGM_CLI_OK. */
int dgm_client_converse(peer *p, show *s, int status);

/* ---- a call whose answer may take its time: shown, waited for, canceled (client_follow.c) --------- */

struct follow {
    peer *p;
    show *s;
    bool waits;  /* until the task is finished or waits for input */
    bool leaves; /* Ctrl-C disconnects and does not cancel the task */
};

/* Returns an exit status; errors were already printed. */
int dgm_client_follow(struct follow *f, dgm_method method, void *params, const char *last_event);
