/*
 * dragoman/document.h - objects as C structs: building, encoding and decoding them, in any format.
 *
 *     dgm_document *d = dgm_document_new();
 *     dgm_message *m = dgm_document_add(d, DGM_OBJECT_MESSAGE);
 *     m->role = DGM_ROLE_USER;
 *     ...
 *     dgm_convert_options o = {.size = sizeof o, .to = DGM_FORMAT_CHAT};
 *     rc = dgm_document_encode(d, &o, &text, &n, err);
 *     dgm_document_free(d);
 *
 * A document is a list of objects and the memory that they are in. It belongs to one thread at a time.
 */
#pragma once

#include <dragoman/agui.h>
#include <dragoman/base.h>
#include <dragoman/convert.h>
#include <dragoman/json.h>
#include <dragoman/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- memory ------------------------------------------------------------------------------------ */

DGM_API dgm_document *dgm_document_new(void);
DGM_API void dgm_document_free(dgm_document *d); /* with everything in it; NULL is allowed */
/* Zeroed memory, aligned for every struct of this library; freed with the document. */
DGM_API void *dgm_document_alloc(dgm_document *d, size_t n);
/* A copy of a text, with a NUL behind it. */
DGM_API dgm_str dgm_document_copy(dgm_document *d, dgm_str text);

/* ---- objects ----------------------------------------------------------------------------------- */

/*
 * Appends a zeroed object and returns the struct of its kind (dragoman/model.h); NULL: the kind has no struct.
 * Structs may point to anything that is valid as long as the document is used: literals, variables of the
 * caller, memory of the document.
 */
DGM_API void *dgm_document_add(dgm_document *d, dgm_object_kind kind);
/* The same for an AG-UI event. A document has either A2A objects or AG-UI events. */
DGM_API dgm_agui_event *dgm_document_add_agui(dgm_document *d);

DGM_API size_t dgm_document_count(const dgm_document *d);
/* NONE for AG-UI events, and if index is too large. */
DGM_API dgm_object_kind dgm_document_kind(const dgm_document *d, size_t index);
/* The struct of that kind; NULL where dgm_document_kind() returns NONE, and for DGM_OBJECT_EMPTY. */
DGM_API void *dgm_document_object(const dgm_document *d, size_t index);
/* The AG-UI event; NULL: it is an A2A object. */
DGM_API dgm_agui_event *dgm_document_agui(const dgm_document *d, size_t index);

/* ---- text -------------------------------------------------------------------------------------- */

/*
 * Text in any format and framing that dgm_convert() reads, as structs. Of the options `to` selects the structs:
 * DGM_FORMAT_NONE A2A objects, DGM_FORMAT_AG_UI AG-UI events; `framing`, `as` and `losses` are not used. Objects
 * of A2A are decoded as they are, with their unknown members (`extra`); other formats are converted to A2A 1.0
 * first. JSON-RPC envelopes are removed, and written again by dgm_document_encode() if the document has one object.
 */
DGM_API dgm_code dgm_document_decode(const dgm_convert_options *options, const char *text, size_t n,
                                     dgm_document **ret_document, dgm_err *err);

/*
 * All objects as text. Of the options `from` and `object` are not used; `to` is required. One object is written as
 * dgm_convert() writes one value, several as it writes a stream.
 */
DGM_API dgm_code dgm_document_encode(const dgm_document *d, const dgm_convert_options *options,
                                     char **ret_text, size_t *ret_n, dgm_err *err);

/*
 * One object as input of a converter, for live streams. The converter's `from` must be an A2A format, or
 * DGM_FORMAT_AG_UI for dgm_converter_feed_agui().
 */
DGM_API dgm_code dgm_converter_feed_object(dgm_converter *c, dgm_object_kind kind,
                                           const void *object, dgm_err *err);
DGM_API dgm_code dgm_converter_feed_agui(dgm_converter *c, const dgm_agui_event *event,
                                         dgm_err *err);

#ifdef __cplusplus
}
#endif
