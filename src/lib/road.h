/*
 * lib/road.h - from any format, through canonical events, to any other.
 *
 * A road is one stream, message or request: what goes in at one end (events of A2A, values of another
 * format) comes out at the other as frames (target.h). Memory is that of the two ends, unless the events
 * are to be compacted: then they are kept until the end.
 */
#pragma once

#include "lib/target.h"

typedef struct dgm_road_params {
    dgm_target_params target;
    bool compact;
    bool compact_simple; /* document 000's events: before they are decoded */
    bool status_is_answer;
    bool say_history; /* A2A: what the user said, too */
    bool many_turns;  /* A2A: a log may hold several */
    bool open_end;    /* A2A: one piece of a stream, others follow elsewhere */
} dgm_road_params;

typedef struct dgm_road dgm_road;

dgm_road *dgm_road_new(const dgm_road_params *params);
void dgm_road_free(dgm_road *road); /* NULL is fine */

/* Of A2A: events, and the error that ends a stream. */
dgm_code dgm_road_event(dgm_road *road, const dgm_event *event, dgm_err *err);
dgm_code dgm_road_error(dgm_road *road, dgm_arena *a, const dgm_error *error, dgm_err *err);
/* An event or a response of another format. */
dgm_code dgm_road_value(dgm_road *road, const dgm_canon_codec *from, dgm_reader *r, yyjson_val *v);
/* And the mark that ends its stream. */
void dgm_road_done(dgm_road *road);
/* Or, instead of events: */
dgm_code dgm_road_messages(dgm_road *road, const dgm_canon_messages *messages, dgm_err *err);
dgm_code dgm_road_request(dgm_road *road, const dgm_canon_input *input, dgm_err *err);
dgm_code dgm_road_send_request(dgm_road *road, dgm_arena *a, const dgm_send_request *request,
                               dgm_err *err);

dgm_code dgm_road_end(dgm_road *road, dgm_err *err);

DGM_DEFINE_AUTO(dgm_road, dgm_road_free)
