/*
 * frontend/openai/openai_files.h - files that agents make, at /v1/files/ID/content.
 *
 * Nothing is stored for it: an id says whose task, which artifact, which of its parts; whoever may see the task may
 * have the file. So no text has base64, and a client can send a file back by its id.
 */
#pragma once

#include "frontend/turn/turn.h"

/* Where a file is: the index-th part with bytes of an artifact. */
struct openai_file {
    dgm_str agent, task_id, artifact_id;
    size_t index;
};

/* "file-..."; absent: the artifact's name is too long for one. */
dgm_str dgm_openai_file_id(dgm_arena *a, const struct openai_file *f);
bool dgm_openai_file_read_id(dgm_arena *a, dgm_str id, struct openai_file *ret);
/* NULL: it is not there (any more). */
const dgm_part *dgm_openai_file_of(const dgm_task *task, const struct openai_file *f);

/* The media type that a file of an agent is served with. Types that a browser runs, or shows as a page that can run
 * something (scripts, style sheets, HTML, XML, SVG), become application/octet-stream. */
dgm_str dgm_openai_file_type(dgm_str type);

/* GET /v1/files/ID/content (not decoded yet). */
void dgm_openai_file_send(const dgm_turn_request *q, dgm_str raw_id);

/* ---- in answers ------------------------------------------------------------------------------------------------ */

/* Counts parts with bytes, artifact by artifact. Lives as long as its exchange. */
struct openai_links {
    dgm_http_exchange *x;
    dgm_str base;           /* "http://127.0.0.1:8484" */
    dgm_str agent, task_id; /* lives as long, too */
    struct openai_made *made;
    size_t n_made;
};

/* base is found out: before the request is forgotten. */
void dgm_openai_links_init(struct openai_links *l, const dgm_turn_request *q, dgm_str agent,
                           dgm_str task_id);
/* An ARTIFACT event with links instead of bytes; images: for images, too. An event without bytes is returned
 * unchanged. In the arena. */
dgm_canon_event dgm_openai_links_put(struct openai_links *l, dgm_arena *a,
                                     const dgm_canon_event *event, bool images);

/* ---- in requests ----------------------------------------------------------------------------------------------- */

/* Parts of users' messages that name a file of ours get its bytes. name: what the parameter is called in a message,
 * below a list of messages ("messages", "file.file_id"). What is not ours: the exchange is answered with 400, and
 * on_done not called. */
struct openai_fetch {
    const dgm_turn_request *q;   /* lives until on_done, as all of this */
    dgm_canon_messages messages; /* are changed */
    const char *list, *member;   /* "messages", "file.file_id": how the parameter is called */
    void (*on_done)(void *arg);
    void *arg;
};
void dgm_openai_fetch_files(const struct openai_fetch *f);
