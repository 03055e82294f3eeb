/* app/client/client_follow.h - a call whose answer may take its time: shown, waited for, canceled. */
#pragma once

#include "app/client/client_int.h"

struct follow {
    peer *p;
    show *s;
    bool waits;  /* until the task needs nobody any more, or somebody */
    bool leaves; /* Ctrl-C goes away and leaves the task alone */
};

/* An exit status; everything was said. */
int dgm_client_follow(struct follow *f, dgm_method method, void *params, const char *last_event);
