/* base/http_date.c - see http_date.h. */
#include "base/http_date.h"

#include <stdio.h>
#include <time.h>

static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

dgm_str dgm_http_date_text(dgm_arena *a, int64_t s)
{
    struct tm t;
    time_t at = (time_t)s;
    gmtime_r(&at, &t);
    return dgm_arena_printf(a, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[t.tm_wday], t.tm_mday,
                            months[t.tm_mon], t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

static bool is_month(const char *name, int *ret)
{
    for (int i = 0; i < 12; i++) {
        if (memcmp(name, months[i], 3) == 0) {
            *ret = i;
            return true;
        }
    }
    return false;
}

bool dgm_http_date_read(dgm_str text, int64_t *ret_s)
{
    struct tm t = {0};
    char copy[32], month[4];
    int end = 0;
    if (text.n != 29)
        return false;
    memcpy(copy, text.p, text.n);
    copy[text.n] = 0;
    if (sscanf(copy, "%*3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d GMT%n", &t.tm_mday, month,
               &t.tm_year, &t.tm_hour, &t.tm_min, &t.tm_sec, &end) != 6 ||
        end != 29 || !is_month(month, &t.tm_mon))
        return false;
    t.tm_year -= 1900;
    *ret_s = (int64_t)timegm(&t);
    return true;
}
