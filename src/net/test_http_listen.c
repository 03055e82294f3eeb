/* test_http_listen.c - addresses, unix sockets, TLS. */
#include "net/test_http.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <sys/un.h>

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static void a_port_in_use_is_one_sentence(void **state)
{
    dgm_http_server *second;
    dgm_err err = {0};
    char address[40];
    (void)state;
    serve(2, (dgm_http_options){0}, NULL);
    snprintf(address, sizeof address, "127.0.0.1:%d", dgm_http_server_port(w.server));
    dgm_http_options o = {.listen = address};
    dgm_http_handler h = {on_request, NULL, NULL};
    check_ok(dgm_http_server_new(w.loops, &o, h, &second, &err), err);
    assert_int_equal(dgm_http_server_start(second, &err), DGM_UNAVAILABLE);
    char want[200];
    snprintf(want, sizeof want,
             "%s is already in use: stop the program that listens there, or choose another address",
             address);
    assert_string_equal(err.msg, want);
    dgm_http_server_free(second);
    int fd = client(); /* the first one goes on */
    say(fd, GET("/x"));
    hear(fd, got, "GET /x ");
    close(fd);
    stop();
}

static void an_invalid_address_is_refused(void **state)
{
    static const char *const bad[] = {"8484",        "127.0.0.1",       ":8484",
                                      "127.0.0.1:x", "127.0.0.1:99999", "::1:8484",
                                      "unix:",       "192.0.2.1:8484",  "127.0.0.1:"};
    dgm_loops *loops;
    dgm_err err = {0};
    (void)state;
    check_ok(dgm_loops_new(1, &loops, &err), err);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dgm_http_server *s;
        dgm_http_options o = {.listen = bad[i]};
        check_ok(
            dgm_http_server_new(loops, &o, (dgm_http_handler){on_request, NULL, NULL}, &s, &err),
            err);
        assert_int_not_equal(dgm_http_server_start(s, &err), DGM_OK);
        assert_true(strlen(err.msg) > 10);
        dgm_http_server_free(s);
    }
    dgm_loops_free(loops);
}

static void ipv6_works_as_well(void **state)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int probe = socket(AF_INET6, SOCK_STREAM, 0);
    bool has = probe >= 0 && bind(probe, (struct sockaddr *)&a, sizeof a) == 0;
    (void)state;
    if (probe >= 0)
        close(probe);
    if (!has)
        skip();
    serve(2, (dgm_http_options){.listen = "[::1]:0"}, NULL);
    a.sin6_port = htons((uint16_t)dgm_http_server_port(w.server));
    int fd = client_to((struct sockaddr *)&a, sizeof a, 0);
    assert_true(fd >= 0);
    say(fd, "GET /who HTTP/1.1\r\nHost: [::1]:80\r\n\r\n");
    hear(fd, got, "loopback plain ");
    close(fd);
    stop();
}

static void a_unix_socket_serves_all_loops_and_replaces_a_stale_file(void **state)
{
    char dir[] = "/tmp/dgm-net-XXXXXX", path[100], listen[120];
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    bool seen[2] = {false, false};
    dgm_err err = {0};
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/s", dir);
    snprintf(listen, sizeof listen, "unix:%s", path);
    strcpy(a.sun_path, path);
    /* left behind by one that died */
    int dead = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(dead, (struct sockaddr *)&a, sizeof a), 0);
    close(dead);
    serve(2, (dgm_http_options){.listen = listen}, NULL);
    assert_int_equal(dgm_http_server_port(w.server), 0);
    for (int i = 0; i < 4; i++) {
        int fd = client_to((struct sockaddr *)&a, sizeof a, 0);
        assert_true(fd >= 0);
        say(fd, GET("/who"));
        hear(fd, got, "loopback plain ");
        seen[strstr(got, "loopback plain ")[15] - '0'] = true;
        close(fd);
    }
    assert_true(seen[0] && seen[1]);
    /* a second one gets an error, and the first goes on */
    dgm_http_server *second;
    dgm_http_options o = {.listen = listen};
    check_ok(
        dgm_http_server_new(w.loops, &o, (dgm_http_handler){on_request, NULL, NULL}, &second, &err),
        err);
    assert_int_equal(dgm_http_server_start(second, &err), DGM_UNAVAILABLE);
    assert_non_null(strstr(err.msg, path));
    assert_non_null(strstr(err.msg, "already in use"));
    dgm_http_server_free(second);
    /* a peer that closes while an answer is awaited is gone: there is no half-close left */
    int fd = client_to((struct sockaddr *)&a, sizeof a, 0);
    say(fd, GET("/silence"));
    wait_for(&w.requests, 5);
    close(fd);
    wait_for(&w.gone, 1);
    stop();
    struct stat st;
    assert_int_not_equal(stat(path, &st), 0); /* it cleans up behind itself */
    FILE *f = fopen(path, "w");
    fclose(f);
    dgm_loops *loops;
    check_ok(dgm_loops_new(1, &loops, &err), err);
    check_ok(
        dgm_http_server_new(loops, &o, (dgm_http_handler){on_request, NULL, NULL}, &second, &err),
        err);
    assert_int_equal(dgm_http_server_start(second, &err), DGM_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "not a socket"));
    dgm_http_server_free(second);
    dgm_loops_free(loops);
    assert_int_equal(stat(path, &st), 0);
    unlink(path);
    rmdir(dir);
}

/* ---- TLS --------------------------------------------------------------------------------------------------------- */

static void make_certificate(const char *cert, const char *key, const char *host)
{
    EVP_PKEY *k = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    X509_NAME *name = X509_get_subject_name(x);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, k);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)host, -1, -1, 0);
    X509_set_issuer_name(x, name);
    assert_true(X509_sign(x, k, EVP_sha256()) > 0);
    FILE *f = fopen(cert, "w");
    PEM_write_X509(f, x);
    fclose(f);
    f = fopen(key, "w");
    PEM_write_PrivateKey(f, k, NULL, NULL, 0, NULL, NULL);
    fclose(f);
    X509_free(x);
    EVP_PKEY_free(k);
}

static SSL *tls_client(SSL_CTX *ctx, int fd, const unsigned char *alpn, unsigned n)
{
    SSL *ssl = SSL_new(ctx);
    SSL_set_fd(ssl, fd);
    SSL_set_alpn_protos(ssl, alpn, n);
    return ssl;
}

/* See hear_some(). */
static bool is_interrupted(SSL *ssl, int k)
{
    return k <= 0 && SSL_get_error(ssl, k) == SSL_ERROR_WANT_READ && errno == EINTR;
}

static int tls_connect(SSL *ssl)
{
    int k;
    do
        k = SSL_connect(ssl);
    while (is_interrupted(ssl, k));
    return k;
}

static int tls_read(SSL *ssl, void *to, int n)
{
    int k;
    do
        k = SSL_read(ssl, to, n);
    while (is_interrupted(ssl, k));
    return k;
}

static void tls_say(SSL *ssl, const char *text)
{
    assert_int_equal(SSL_write(ssl, text, (int)strlen(text)), (int)strlen(text));
}

static void tls_hear(SSL *ssl, const char *text)
{
    int n = 0, k;
    got[0] = 0;
    while (!strstr(got, text) && (k = tls_read(ssl, got + n, (int)sizeof got - 1 - n)) > 0)
        got[n += k] = 0;
    if (!strstr(got, text))
        print_error("waited for \"%s\", heard %d: %s\n", text, n, got);
    assert_non_null(strstr(got, text));
}

static void tls_is_the_same_with_a_lock(void **state)
{
    char dir[] = "/tmp/dgm-net-XXXXXX", cert[100], key[100];
    static const unsigned char http11[] = "\x02h2\x08http/1.1", h2[] = "\x02h2";
    static char buf[20000];
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(cert, sizeof cert, "%s/cert.pem", dir);
    snprintf(key, sizeof key, "%s/key.pem", dir);
    make_certificate(cert, key, "localhost");
    serve(2, (dgm_http_options){.tls_cert = cert, .tls_key = key}, NULL);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    int fd = client();
    SSL *ssl = tls_client(ctx, fd, http11, sizeof http11 - 1);
    assert_int_equal(tls_connect(ssl), 1);
    const unsigned char *proto;
    unsigned n_proto;
    SSL_get0_alpn_selected(ssl, &proto, &n_proto);
    assert_int_equal(n_proto, 8);
    tls_say(ssl, GET("/who"));
    tls_hear(ssl, "loopback tls ");
    tls_say(ssl,
            GET("/later") GET("/ticks") "POST /x HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi");
    tls_hear(ssl, "POST /x hi");
    assert_non_null(strstr(got, "\r\n\r\n/later"));
    assert_non_null(strstr(got, "c\r\ntick 1\ntock\n\r\n0\r\n\r\n"));
    tls_say(ssl, "GET /blocks?300 HTTP/1.0\r\n\r\n"); /* 3 MB, then goodbye in two layers */
    size_t n = 0;
    int k;
    while ((k = tls_read(ssl, buf, sizeof buf)) > 0)
        n += (size_t)k;
    assert_true(n > 300 * BLOCK && n < 300 * BLOCK + 500);
    assert_int_equal(SSL_get_error(ssl, k), SSL_ERROR_ZERO_RETURN);
    SSL_free(ssl);
    close(fd);

    /* TLS 1.1 and a client that only speaks HTTP/2 get no connection */
    for (int i = 0; i < 2; i++) {
        fd = client();
        ssl = i ? tls_client(ctx, fd, h2, sizeof h2 - 1)
                : tls_client(ctx, fd, http11, sizeof http11 - 1);
        if (!i)
            SSL_set_max_proto_version(ssl, TLS1_1_VERSION);
        assert_int_not_equal(tls_connect(ssl), 1);
        SSL_free(ssl);
        close(fd);
        ERR_clear_error();
    }
    /* a ClientHello in many segments, some of which begin like a method */
    fd = client();
    ssl = SSL_new(ctx);
    BIO *to_server = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), to_server);
    SSL_set_tlsext_host_name(ssl, "LOCALHOST.LOCALDOMAIN");
    assert_int_not_equal(tls_connect(ssl), 1);
    char *hello, answer_type;
    long n_hello = BIO_get_mem_data(to_server, &hello);
    for (long i = 0; i < n_hello; i++) {
        say_n(fd, hello + i, 1);
        if (hello[i] >= 'A' && hello[i] <= 'Z')
            usleep(300);
    }
    assert_int_equal(hear_some(fd, &answer_type, 1), 1);
    assert_int_equal(answer_type, 22); /* ServerHello */
    SSL_free(ssl);
    close(fd);
    ERR_clear_error();
    /* plain HTTP gets a plain answer, garbage gets none */
    fd = client();
    say(fd, GET("/x"));
    char *all = hear_all(fd, NULL, NULL);
    assert_memory_equal(all, "HTTP/1.1 400 ", 13);
    assert_non_null(strstr(all, "HTTPS"));
    free(all);
    close(fd);
    fd = client();
    say(fd, "\x16garbage that is no handshake");
    free(hear_all(fd, NULL, NULL));
    close(fd);
    /* gone is noticed here too */
    fd = client();
    ssl = tls_client(ctx, fd, http11, sizeof http11 - 1);
    assert_int_equal(tls_connect(ssl), 1);
    tls_say(ssl, GET("/hold"));
    tls_hear(ssl, ": hello\n\n");
    struct linger hard = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
    SSL_free(ssl);
    wait_for(&w.gone, 1);
    wait_for_connections(0);
    stop();
    SSL_CTX_free(ctx);

    dgm_loops *loops;
    dgm_http_server *s;
    dgm_err err = {0};
    dgm_http_handler h = {on_request, NULL, NULL};
    check_ok(dgm_loops_new(1, &loops, &err), err);
    dgm_http_options o = {.listen = "127.0.0.1:0", .tls_cert = "/no/such.pem", .tls_key = key};
    assert_int_equal(dgm_http_server_new(loops, &o, h, &s, &err), DGM_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "/no/such.pem"));
    o.tls_key = NULL;
    assert_int_equal(dgm_http_server_new(loops, &o, h, &s, &err), DGM_BAD_PARAMS);
    dgm_loops_free(loops);
    unlink(cert);
    unlink(key);
    rmdir(dir);
}

static bool has_name(SSL *ssl, const char *name)
{
    X509 *x = SSL_get1_peer_certificate(ssl);
    char text[100] = "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, text, sizeof text);
    X509_free(x);
    return strcmp(text, name) == 0;
}

static void a_new_certificate_is_for_new_connections(void **state)
{
    char dir[] = "/tmp/dgm-net-XXXXXX", cert[100], key[100];
    dgm_err err = {0};
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(cert, sizeof cert, "%s/cert.pem", dir);
    snprintf(key, sizeof key, "%s/key.pem", dir);
    make_certificate(cert, key, "first");
    serve(2, (dgm_http_options){.tls_cert = cert, .tls_key = key}, NULL);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    int old_fd = client();
    SSL *old = tls_client(ctx, old_fd, (const unsigned char *)"\x08http/1.1", 9);
    assert_int_equal(tls_connect(old), 1);
    assert_true(has_name(old, "first"));
    tls_say(old, GET("/x"));
    tls_hear(old, "GET /x ");

    /* what cannot be read changes nothing */
    assert_int_equal(dgm_http_server_set_tls(w.server, "/no/such.pem", key, &err), DGM_UNAVAILABLE);
    make_certificate(cert, key, "second");
    check_ok(dgm_http_server_set_tls(w.server, cert, key, &err), err);
    for (int i = 0, seen = 0; seen < 8; i++) { /* both loops have it, soon */
        int fd = client();
        SSL *ssl = tls_client(ctx, fd, (const unsigned char *)"\x08http/1.1", 9);
        assert_int_equal(tls_connect(ssl), 1);
        seen = has_name(ssl, "second") ? seen + 1 : 0;
        SSL_free(ssl);
        close(fd);
        assert_true(i < 15000);
        if (!seen)
            usleep(2000);
    }
    tls_say(old, GET("/y")); /* the first connection goes on as it was */
    tls_hear(old, "GET /y ");
    SSL_free(old);
    close(old_fd);
    SSL_CTX_free(ctx);
    stop();

    serve(1, (dgm_http_options){0}, NULL);
    assert_int_equal(dgm_http_server_set_tls(w.server, cert, key, &err), DGM_BAD_PARAMS);
    stop();
    unlink(cert);
    unlink(key);
    rmdir(dir);
}

DGM_TEST_MAIN(dgm_test(a_port_in_use_is_one_sentence), dgm_test(an_invalid_address_is_refused),
              dgm_test(ipv6_works_as_well),
              dgm_test(a_unix_socket_serves_all_loops_and_replaces_a_stale_file),
              dgm_test(tls_is_the_same_with_a_lock),
              dgm_test(a_new_certificate_is_for_new_connections))
