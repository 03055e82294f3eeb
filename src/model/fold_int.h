/*
 * model/fold_int.h - the inside of a fold: what fold.c decides about and fold_keep.c stores.
 *
 * Lists live on the heap and double; everything they point to lives in one arena. What is replaced
 * stays in the arena as garbage and is counted; when more than half is garbage the rest moves to a
 * new arena. Each byte moved then stands for a byte that was dropped, so this too is O(1) per event.
 */
#pragma once

#include "base/map.h"
#include "model/fold.h"

/* The members of a metadata object: found by key, an object only when it is read. Made with the first metadata: most tasks
 * and artifacts have none. */
struct members {
    dgm_member *at;
    uint32_t *bytes; /* of the arena, per member */
    uint32_t n, cap; /* of both */
    dgm_map index;
    size_t object_bytes; /* of the object last made */
    bool stale;
};

/* Beside each artifact of the Task. */
struct slot {
    uint32_t parts_cap, extensions_cap;
    size_t text_cap; /* the last part is a text with room for so many bytes; 0: without room */
    size_t bytes, extra_bytes; /* of the arena: all but id and metadata; the unknown members */
    struct members *metadata;  /* or NULL */
    dgm_map extensions;
    bool sealed; /* lastChunk was seen */
    bool queued; /* is in the fold's list of stale ones */
};

/* What few Tasks need; made with the first of them. */
struct rare {
    dgm_map messages; /* messageId -> index of the last one in the history, once they are many */
    uint32_t *stale;  /* artifacts whose metadata changed since somebody looked */
    uint64_t *passed; /* ids of messages that were shown and not stored */
    dgm_err *warning; /* made when there is one */
    uint32_t n_stale, stale_cap;
    uint32_t n_passed, passed_cap; /* all so far; of the list */
    uint32_t n_warnings;
};

/* A task that waits has little else in memory: what counts list entries or the bytes of one record is
 * small enough for 32 bits (DGM_MAX_LIST_ITEMS, DGM_MAX_RECORD_BYTES). */
struct dgm_fold {
    bool foreign, keep_transitory;                /* see dgm_fold_options */
    bool has_task, has_lent_id, has_lent_context; /* the ids of dgm_fold_options are in use */
    struct {
        bool open, sealed;
    } delta; /* the artifact that is not kept */
    dgm_arena *arena;
    size_t garbage;
    dgm_task task;
    /* of the arena: the status's message; its unknown members; the task's */
    uint32_t message_bytes, status_extra_bytes, extra_bytes;
    uint32_t artifacts_cap; /* of slots too */
    uint32_t history_cap;
    struct members *metadata; /* or NULL */
    struct slot *slots;
    dgm_map artifacts;       /* artifactId -> index */
    const struct rare *rare; /* to read; never NULL. dgm_fold_rare() to write */
    size_t grown;            /* of the arena, in this event: room for texts, which is not copied */
    dgm_fold_cost cost;
};

/* Room for what a task of few words says. */
#define DGM_FOLD_FIRST_BYTES 176

/* Below this it is not worth tidying up. */
#define DGM_FOLD_GARBAGE_FLOOR ((size_t)64 << 10)

/* fold.c */
struct rare *dgm_fold_rare(dgm_fold *f);
void dgm_fold_warn(dgm_fold *f, const dgm_at *at, const char *text);

/* fold_keep.c: these functions cannot fail; the caller checked the limits before. */

/* guard: the position of the members, if the server's own must not be changed; else NULL. */
void dgm_fold_merge(dgm_fold *f, struct members **m, const dgm_json *object, const dgm_at *guard);
void dgm_fold_free_members(struct members *m);

void dgm_fold_add_message(dgm_fold *f, const dgm_message *m);
/* Index of the last message with that id in the history; the length of the history: not found. */
size_t dgm_fold_find_message(const dgm_fold *f, dgm_str id);
/* Was it shown as the message of a status, and not stored? */
bool dgm_fold_has_passed(const dgm_fold *f, const dgm_message *m);
/* Something follows the status message, which there is: it moves to the history if it belongs there. */
void dgm_fold_retire_status_message(dgm_fold *f);
void dgm_fold_drop_status_message(dgm_fold *f);
void dgm_fold_set_status(dgm_fold *f, const dgm_status *s);

size_t dgm_fold_open_artifact(dgm_fold *f, dgm_str id); /* returns its index */
void dgm_fold_clear_artifact(dgm_fold *f, size_t i);
/* To an empty one: all there is. */
void dgm_fold_add_to_artifact(dgm_fold *f, size_t i, const dgm_artifact *from);

/* Events of foreign agents may come before their task; a task may leave its context out. */
void dgm_fold_learn_ids(dgm_fold *f, dgm_str task_id, dgm_str context_id);
void dgm_fold_set_extra(dgm_fold *f, const dgm_extra *extra);

void dgm_fold_tidy(dgm_fold *f); /* if half of the arena is garbage */
