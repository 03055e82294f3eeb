/* app/client/client_follow.h - a call whose answer may take its time: shown, waited for, canceled. */
#pragma once

#include "app/client/client_int.h"

struct follow {
    peer *p;
    show *s;
    bool waits;  /* until the task is finished or waits for input */
    bool leaves; /* Ctrl-C disconnects and does not cancel the task */
};

/* Returns an exit status; errors were already printed. */
int dgm_client_follow(struct follow *f, dgm_method method, void *params, const char *last_event);
