/* net/http_int.h - what tests of the server may turn. */
#pragma once

#include "net/http.h"

typedef struct dgm_http_times {
    uint64_t headers_ms; /* from a request's first byte to the end of its head; a TLS handshake */
    uint64_t body_ms;    /* between two pieces of a body */
    uint64_t idle_ms;    /* between two requests */
    uint64_t write_ms;   /* between two times that the kernel took a byte */
    uint64_t linger_ms;  /* for the peer to see the end of our last answer */
    uint64_t backoff_ms; /* after accept() failed */
} dgm_http_times;

/* Before start. */
void dgm_http_server_set_times(dgm_http_server *s, dgm_http_times times);
/* Connections that are open, all loops; for a test that has stopped or waits. */
size_t dgm_http_server_connections(const dgm_http_server *s);
