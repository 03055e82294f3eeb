/* support/quiet_port.h - a port whose connections are never answered. */
#pragma once

#include "support/check.h"

#include <netinet/in.h>
#include <sys/socket.h>

/* The socket that listens; the caller closes it. */
static inline int open_quiet_port(int *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}
