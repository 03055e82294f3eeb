/* core/test_core_sqlite.c - the tests of test_core.c, on SQLite: a new database for each. */
#define STORE_URL store_url
static const char *store_url(void);

#include "test_core.c" /* NOLINT(bugprone-suspicious-include): that is the point */

static void remove_databases(void)
{
    (void)!system(
        "rm -rf /tmp/dgm-core-test-*"); /* ours alone: no other test names its folders so */
}

static const char *store_url(void)
{
    static char dir[64], url[96];
    if (!*dir)
        atexit(remove_databases);
    snprintf(dir, sizeof dir, "/tmp/dgm-core-test-XXXXXX");
    if (!mkdtemp(dir))
        fail_msg("no folder for the database");
    snprintf(url, sizeof url, "sqlite:%s/db", dir);
    return url;
}
