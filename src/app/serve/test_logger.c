/* test_logger.c - lines of the log, read from a pipe. */
#include "app/serve/logger.h"
#include "support/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct heard {
    int fd;
    char *text;
    pthread_t thread;
};

static void *listen_to_it(void *arg)
{
    struct heard *h = arg;
    size_t n = 0, cap = 1 << 22;
    ssize_t k;
    h->text = malloc(cap);
    while (n + 1 < cap && (k = read(h->fd, h->text + n, cap - n - 1)) > 0)
        n += (size_t)k;
    h->text[n] = 0;
    close(h->fd);
    return NULL;
}

static dgm_logger *begin(struct heard *h, dgm_config_log_level level, dgm_config_log_format format,
                         int *ret_fd)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    h->fd = ends[0];
    *ret_fd = ends[1];
    return dgm_logger_new(ends[1], level, format);
}

/* All that was logged, without the time; freed by the caller. */
static char *end(struct heard *h, dgm_logger *l, int fd)
{
    pthread_create(&h->thread, NULL, listen_to_it, h);
    dgm_logger_free(l);
    close(fd);
    pthread_join(h->thread, NULL);
    return h->text;
}

static void a_line_has_its_fields(void **state)
{
    struct heard h;
    int fd;
    dgm_logger *l = begin(&h, DGM_LOG_INFO, DGM_LOG_TEXT, &fd);
    (void)state;
    dgm_logger_says(l, DGM_LOG_WARN, "it happened", {"a", DGM_STR("one"), 0}, {"b", {0}, 2},
                    {"c", {0}, 0.25}, {"none", DGM_STR(""), 0}, {"d", DGM_STR("two words"), 0},
                    {"e", DGM_STR("x\n\x1b[31m\"="), 0});
    dgm_logger_says(l, DGM_LOG_DEBUG, "not said", {"a", {0}, 1});
    char *text = end(&h, l, fd);
    assert_int_equal(text[10], 'T');
    assert_string_equal(text + 24, " warn  it happened a=one b=2 c=0.250 d=\"two words\" "
                                   "e=\"x\\n?[31m\\\"=\"\n");
    free(text);
}

static void programs_get_json(void **state)
{
    struct heard h;
    int fd;
    dgm_logger *l = begin(&h, DGM_LOG_DEBUG, DGM_LOG_JSON, &fd);
    (void)state;
    dgm_logger_says(l, DGM_LOG_DEBUG, "said", {"a", DGM_STR("\xff\"\xc3\xa9"), 0},
                    {"b", DGM_STR("\xc3\xa9"), 0}, {"n", {0}, -1.5});
    char *text = end(&h, l, fd);
    assert_non_null(strstr(text, "Z\",\"level\":\"debug\",\"msg\":\"said\",\"a\":\"?\\\"??\",\"b\":"
                                 "\"\xc3\xa9\",\"n\":-1.500}\n"));
    free(text);
}

static void a_line_that_is_too_long_keeps_its_head(void **state)
{
    struct heard h;
    int fd;
    dgm_log_field fields[6];
    char *big = malloc(5000);
    dgm_logger *l = begin(&h, DGM_LOG_INFO, DGM_LOG_TEXT, &fd);
    (void)state;
    memset(big, 'x', 5000);
    for (size_t i = 0; i < 6; i++)
        fields[i] = (dgm_log_field){"f", {big, 5000}, 0};
    dgm_logger_say(l, DGM_LOG_INFO, "much", fields, 6);
    dgm_logger_say(l, DGM_LOG_INFO, "less", fields, 1);
    char *text = end(&h, l, fd);
    assert_string_equal(strchr(text, ' '), strstr(text, " info  much\n"));
    assert_non_null(strstr(text, " info  less f=xxx"));
    free(text);
    free(big);
}

static void lines_that_are_not_read_are_dropped_and_counted(void **state)
{
    struct heard h;
    int fd;
    dgm_logger *l = begin(&h, DGM_LOG_INFO, DGM_LOG_TEXT, &fd);
    (void)state;
    for (int i = 0; i < 60000; i++) /* more than waits */
        dgm_logger_says(l, DGM_LOG_INFO, "a line among many", {"number", {0}, i});
    dgm_logger_set(l, DGM_LOG_ERROR, DGM_LOG_TEXT);
    dgm_logger_say(l, DGM_LOG_INFO, "not any more", NULL, 0);
    char *text = end(&h, l, fd);
    assert_non_null(strstr(text, "number=1\n"));
    assert_non_null(strstr(text, " log lines were dropped"));
    assert_null(strstr(text, "not any more"));
    free(text);
}

DGM_TEST_MAIN(dgm_test(a_line_has_its_fields), dgm_test(programs_get_json),
              dgm_test(a_line_that_is_too_long_keeps_its_head),
              dgm_test(lines_that_are_not_read_are_dropped_and_counted))
