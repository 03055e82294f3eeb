/*
 * lib/loss_writing.c - canonical events, messages and requests in AG-UI's names, for loss_watch.c.
 *
 * AG-UI has a place for everything that is canonical, and the rows of every target are in its names. So the
 * values that a target gets are encoded as AG-UI once more, and the rows are matched against that.
 */
#include "base/limits.h"
#include "lib/loss_watch.h"
#include "wire/agui/agui_codec.h"

#include <stdlib.h>

struct dgm_loss_writing {
    dgm_loss_watch *watch;
    const dgm_codec *to;
    dgm_arena *arena;
    dgm_stream_params stream;
    void *encoder;
    dgm_form form; /* of the frames that come next */
};

static dgm_code on_written_frame(void *arg, dgm_str name, dgm_str payload)
{
    dgm_loss_writing *l = arg;
    (void)name;
    dgm_arena_reset(l->arena);
    dgm_loss_watch_written(l->watch, l->to, dgm_json_parse_trusted(l->arena, payload), l->form);
    return DGM_OK;
}

dgm_loss_writing *dgm_loss_writing_new(dgm_loss_watch *w, const dgm_codec *to)
{
    dgm_loss_writing *l = dgm_xcalloc(1, sizeof *l);
    l->watch = w;
    l->to = to;
    l->arena = dgm_arena_new();
    l->stream = (dgm_stream_params){.fragment = true};
    l->encoder = dgm_codec_agui.encoder_new(&l->stream, (dgm_frame_sink){on_written_frame, l});
    return l;
}

void dgm_loss_writing_free(dgm_loss_writing *l)
{
    if (!l)
        return;
    dgm_codec_agui.encoder_free(l->encoder);
    dgm_arena_free(l->arena);
    free(l);
}

static dgm_code on_passed_event(void *arg, const dgm_canon_event *event, dgm_canon_sink next)
{
    dgm_loss_watch_passed(((dgm_loss_writing *)arg)->watch);
    return dgm_canon_emit(next, event);
}

/* A value that cannot be encoded is an error of the conversion, which reports it. */
static dgm_code on_written_event(void *arg, const dgm_canon_event *event, dgm_canon_sink next)
{
    dgm_loss_writing *l = arg;
    dgm_err ignored = {0};
    l->form = DGM_FORM_EVENTS;
    dgm_loss_watch_passed(l->watch);
    dgm_codec_agui.encoder_feed(l->encoder, event, &ignored);
    return dgm_canon_emit(next, event);
}

static void on_written_messages(void *arg, const dgm_canon_messages *messages)
{
    dgm_loss_writing *l = arg;
    dgm_err ignored = {0};
    l->form = DGM_FORM_MESSAGES;
    dgm_codec_agui.write_messages(messages, &l->stream, (dgm_frame_sink){on_written_frame, l},
                                  &ignored);
}

static void on_written_request(void *arg, const dgm_canon_input *input)
{
    dgm_loss_writing *l = arg;
    dgm_err ignored = {0};
    dgm_buf text;
    dgm_buf_init(&text, DGM_MAX_OUTPUT_BYTES);
    dgm_writer w = {.out = &text, .format = DGM_FORMAT_AG_UI};
    l->form = DGM_FORM_REQUEST;
    if (!dgm_codec_agui.write_request(&w, input, &l->stream, &ignored) && !text.over)
        on_written_frame(l, (dgm_str){0}, dgm_buf_str(&text));
    dgm_buf_done(&text);
}

void dgm_loss_writing_observe(dgm_loss_writing *l, dgm_stream_options *options)
{
    bool events = options->form == DGM_FORM_EVENTS || options->form == DGM_FORM_RESPONSE;
    options->on_event = events ? on_written_event : on_passed_event;
    options->on_messages = on_written_messages;
    options->on_request = on_written_request;
    options->arg = l;
}
