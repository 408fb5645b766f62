/* SPDX-License-Identifier: Apache-2.0 */
/* test_http_tls.c - with TLS the server keeps the same word, and nobody is trusted by mistake.
 *
 * Method: client and server in one process, with certificates made for this run. The sizes are
 * those at which TLS records and sockets' buffers are full; what no client does, a plain socket
 * does. Every way to give wrong files is tried, and its message looked at.
 */
#include "unit/cluster/net/http_world.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "unit/cluster/net/tls_world.h"

static bool has_openssl;

static int set_up(void **state)
{
    (void)state;
    static char certificate[128];
    static char key[128];
    static char ca[128];
    if (!has_openssl) return 0;
    (void)snprintf(certificate, sizeof certificate, "%s", tls_path("server.pem"));
    (void)snprintf(key, sizeof key, "%s", tls_path("server.key"));
    (void)snprintf(ca, sizeof ca, "%s", tls_path("ca.pem"));
    world_tls = (struct world_tls){.certificate = certificate, .key = key, .ca = ca};
    return 0;
}

#define NEED_OPENSSL()                                                                             \
    do {                                                                                           \
        (void)state;                                                                               \
        if (!has_openssl) skip();                                                                  \
    } while (0)

/* ---- what a good client does ---- */

static void bodies_of_all_sizes_go_round(void **state)
{
    NEED_OPENSSL();
    static const size_t sizes[] = {0, 1, 16383, 16384, 16385, 65537, BODY_LIMIT, 16 << 20};
    struct http_world world;
    struct http_server_options options = server_options(&world);
    options.body_limit = 16 << 20;
    world_open(&world, &options);
    http_client_close(world.client);
    struct http_client_options for_client = client_options();
    struct error err;
    for_client.body_limit = 16 << 20;
    assert_int_equal(http_client_open(&for_client, &world.client, &err), STATUS_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct buf sent = make_bytes(sizes[i]);
        struct http_done done = call(&world, "PUT", "/echo", buf_text(&sent));
        assert_string_equal(done.error.text, "");
        assert_int_equal(done.status, 200);
        assert_true(text_equal(buf_text(&done.body), buf_text(&sent)));
        buf_done(&done.body);
        buf_done(&sent);
    }
    world_close(&world);
}

/* Suspended on many connections, resumed from another thread, with bodies of several records. */
static void many_calls_are_answered_in_any_order(void **state)
{
    NEED_OPENSSL();
    enum { CALLS = 120, SIZE = 40000 };
    struct http_world world;
    struct error err;
    bool seen[CALLS] = {false};
    struct buf bodies[CALLS];
    struct http_server_options options = server_options(&world);
    world_open(&world, &options);
    for (uint32_t i = 0; i < CALLS; i++) {
        bodies[i] = make_bytes(SIZE + i);
        start(&world, i, "PUT", "/hold", buf_text(&bodies[i]));
    }
    for (uint32_t finished = 0; finished < CALLS;) {
        struct http_done done;
        bool any = false;
        assert_int_equal(http_client_poll(world.client, 10, &done, &any, &err), STATUS_OK);
        if (!any) {
            pthread_t thread;
            assert_int_equal(pthread_create(&thread, NULL, reply_in_reverse, &world), 0);
            assert_int_equal(pthread_join(thread, NULL), 0);
            continue;
        }
        assert_string_equal(done.error.text, "");
        assert_false(seen[done.id]);
        seen[done.id] = true;
        assert_true(text_equal(buf_text(&done.body), buf_text(&bodies[done.id])));
        buf_done(&done.body);
        finished++;
    }
    for (uint32_t i = 0; i < CALLS; i++) {
        buf_done(&bodies[i]);
    }
    world_close(&world);
}

static void a_reply_from_another_thread_is_sent_at_once(void **state)
{
    NEED_OPENSSL();
    enum { ROUNDS = 40 };
    struct http_world world;
    struct http_done done;
    struct http_server_options options = server_options(&world);
    options.sweep_ms = SWEEP_NEVER_MS;
    world_open(&world, &options);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        start(&world, i, "PUT", "/hold", text_of("body"));
        wait_until_held(&world, 1);
        usleep(1000); /* The server's thread goes to sleep. */
        (void)reply_in_reverse(&world);
        finish(world.client, &done);
        assert_int_equal(done.status, 200);
        buf_done(&done.body);
    }
    world_close(&world);
}

static void a_waiting_client_that_leaves_is_noticed(void **state)
{
    NEED_OPENSSL();
    struct http_world world;
    world_open(&world, NULL);
    start(&world, 1, "PUT", "/hold", text_of("body"));
    wait_until_held(&world, 1);
    http_client_close(world.client);
    world_open_client(&world);
    wait_for(&world, &world.gone_count, 1);
    assert_int_equal(world.gone[0], world.held[0].id);
    /* Nobody hears it, and nobody is killed by a signal. */
    assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    struct http_reply reply = {.status = 200, .body = make_bytes(8 << 20)};
    http_server_reply(world.server, world.held[0].id, &reply);
    expect_status(&world, "GET", "/tell", nothing, 200);
    start(&world, 2, "PUT", "/hold", text_of("body"));
    wait_until_held(&world, 2);
    http_client_close(world.client);
    world.client = NULL;
    world_close(&world); /* With a connection that is only half closed. */
}

/* ---- those who don't get as far as a request ---- */

/* The beginning of a greeting, whose end never comes. */
static const char hello[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";

static void who_stalls_while_agreeing_on_a_session_is_dropped(void **state)
{
    NEED_OPENSSL();
    enum { CASES = 4 };
    struct http_world world;
    struct http_server_options options = server_options(&world);
    options.idle_timeout_s = scaled_ms(5000) / 1000;
    options.deadline_ms = scaled_ms(500);
    world_open(&world, &options);
    int sockets[CASES]; /* Silent, silent after the first bytes, dripping, and shouting nonsense. */
    uint64_t closed_ms[CASES] = {0};
    int left = CASES;
    uint64_t begun_ms = clock_ms();
    for (int i = 0; i < CASES; i++) {
        sockets[i] = raw_open(&world);
        if (i == 1 || i == 2) assert_true(raw_send(sockets[i], hello, sizeof hello - 1));
        if (i == 3) raw_say(sockets[i], "GET /tell HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    expect_status(&world, "GET", "/tell", nothing, 200);          /* Others don't wait for them. */
    while (left > 0 && clock_ms() - begun_ms < scaled_ms(4000)) { /* Sooner than who is idle. */
        usleep(20000);
        for (int i = 0; i < CASES; i++) {
            char bytes[64];
            if (closed_ms[i] > 0) continue;
            if (i == 2) (void)raw_send(sockets[i], "\x01", 1);
            ssize_t got = recv(sockets[i], bytes, sizeof bytes, MSG_DONTWAIT);
            if (got > 0 || (got < 0 && errno == EAGAIN)) continue;
            closed_ms[i] = clock_ms() - begun_ms;
            left--;
        }
    }
    assert_int_equal(left, 0);
    for (int i = 0; i < 3; i++) {
        assert_true(closed_ms[i] + 50 >= options.deadline_ms);
        close(sockets[i]);
    }
    close(sockets[3]);
    assert_int_equal(counted(&world, &world.request_count), 1);
    world_close(&world);
}

static void those_who_stall_don_t_keep_others_out_for_long(void **state)
{
    NEED_OPENSSL();
    enum { LIMIT = 8 };
    struct http_world world;
    struct http_server_options options = server_options(&world);
    options.connection_limit = LIMIT;
    options.deadline_ms = scaled_ms(400);
    world_open(&world, &options);
    int sockets[LIMIT];
    for (int i = 0; i < LIMIT; i++) {
        sockets[i] = raw_open(&world);
        assert_true(raw_send(sockets[i], hello, sizeof hello - 1));
    }
    /* A call is given up long before the idle timeout. */
    assert_true(options.idle_timeout_s * 1000 > 2 * scaled_ms(LONG_MS));
    expect_status(&world, "GET", "/tell", nothing, 200);
    for (int i = 0; i < LIMIT; i++) {
        close(sockets[i]);
    }
    world_close(&world);
}

static void a_client_may_be_idle_between_requests(void **state)
{
    NEED_OPENSSL();
    struct http_world world;
    struct http_server_options options = server_options(&world);
    options.deadline_ms = scaled_ms(300);
    options.address_limit = 1; /* A second connection would be closed. */
    world_open(&world, &options);
    expect_status(&world, "GET", "/tell", nothing, 200);
    usleep(scaled_ms(600) * 1000);
    expect_status(&world, "GET", "/tell", nothing, 200);
    world_close(&world);
}

/* ---- whom a client trusts ---- */

static struct http_done ask(struct http_world *world, const struct http_client_options *options,
                            const char *scheme)
{
    struct http_client *client = NULL;
    struct http_done done;
    struct error err;
    char base[64];
    assert_int_equal(http_client_open(options, &client, &err), STATUS_OK);
    (void)snprintf(base, sizeof base, "%s://127.0.0.1:%u", scheme, http_server_port(world->server));
    struct http_call asked = {.base = base,
                              .method = text_of("GET"),
                              .target = text_of("/tell"),
                              .timeout_ms = scaled_ms(LONG_MS)};
    assert_int_equal(http_client_start(client, 1, &asked, &err), STATUS_OK);
    finish(client, &done);
    http_client_close(client);
    return done;
}

static void expect_distrust(struct http_world *world, const char *ca, const char *words)
{
    struct http_client_options options = client_options();
    options.ca = ca;
    struct http_done done = ask(world, &options, "https");
    assert_true(done.failed);
    assert_true(done.is_distrusted);
    if (strstr(done.error.text, words) == NULL) fail_msg("%s", done.error.text);
}

static void a_certificate_is_trusted_only_for_its_ca_and_host(void **state)
{
    NEED_OPENSSL();
    struct http_world world;
    world_open(&world, NULL);
    expect_distrust(&world, tls_path("stranger.pem"), "unable to get local issuer");
    expect_distrust(&world, NULL, "needs its CA");
    world_close(&world);

    world_tls.certificate = tls_path("elsewhere.pem");
    world_tls.key = tls_path("elsewhere.key");
    world_open(&world, NULL);
    expect_distrust(&world, tls_path("ca.pem"), "127.0.0.1");
    /* Who has the certificate itself need not care for names. */
    struct http_client_options options = client_options();
    options.any_name = true;
    options.ca = world_tls.certificate;
    struct http_done done = ask(&world, &options, "https");
    assert_string_equal(done.error.text, "");
    assert_int_equal(done.status, 200);
    buf_done(&done.body);
    options.ca = tls_path("server.pem");
    done = ask(&world, &options, "https");
    assert_true(done.is_distrusted);
    world_close(&world);
}

static void http_and_https_do_not_understand_each_other(void **state)
{
    NEED_OPENSSL();
    struct http_world world;
    struct http_client_options options = client_options();
    world_open(&world, NULL);
    struct http_done done = ask(&world, &options, "http");
    assert_true(done.failed);
    assert_non_null(strstr(done.error.text, "https"));
    expect_status(&world, "GET", "/tell", nothing, 200);
    world_close(&world);

    world_tls = (struct world_tls){0};
    world_open(&world, NULL);
    done = ask(&world, &options, "https");
    assert_true(done.failed);
    assert_false(done.is_distrusted);
    assert_non_null(strstr(done.error.text, "http only"));
    expect_status(&world, "GET", "/tell", nothing, 200);
    world_close(&world);
}

static void a_ca_file_that_is_none_is_told_at_once(void **state)
{
    NEED_OPENSSL();
    static const char *const files[][2] = {
        {"nowhere.pem", "nowhere.pem"},
        {"config", "holds no certificate in PEM"},
        {"ca.key", "holds no certificate in PEM, but a key"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct http_client_options options = client_options();
        struct http_client *client = NULL;
        struct error err;
        options.ca = tls_path(files[i][0]);
        assert_int_equal(http_client_open(&options, &client, &err), STATUS_USAGE);
        assert_non_null(strstr(err.text, options.ca));
        assert_non_null(strstr(err.text, files[i][1]));
        assert_null(client);
    }
}

/* ---- the server's files ---- */

static void refuse_files(const char *certificate, const char *key, status code, const char *words)
{
    struct http_world world = {.bodies = {.limit_bytes = BUDGET}};
    struct http_server_options options = server_options(&world);
    struct http_listener listener = {.request = on_request, .gone = on_gone};
    struct http_server *server = NULL;
    struct error err;
    options.certificate = tls_path(certificate);
    options.key = tls_path(key);
    assert_int_equal(http_server_open(&options, &listener, &server, &err), code);
    if (strstr(err.text, words) == NULL) fail_msg("%s", err.text);
    bool is_named =
        strstr(err.text, options.certificate) != NULL || strstr(err.text, options.key) != NULL;
    assert_true(is_named);
    assert_null(server);
}

static void refuse_broken_certificate(void)
{
    refuse_files("broken.pem", "server.key", STATUS_USAGE, "can't be used with the key");
}

/* Where GnuTLS may lose memory, as it does with such a file. */
static void in_a_process_of_its_own(void (*act)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        act();
        _exit(0); /* A failed assertion ends the process with another code. */
    }
    int code = -1;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
}

static int open_files(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

static void files_that_are_of_no_use_are_refused_by_name(void **state)
{
    NEED_OPENSSL();
    assert_true(tls_run("openssl pkcs8 -topk8 -in server.key -out locked.key -passout pass:x && "
                        "cp server.key open.key && chmod 640 open.key && "
                        "sed 's/^M/x/' server.pem > broken.pem && "
                        "sed 's/^M/x/' server.key > broken.key && chmod 600 *.key open.key && "
                        "chmod 640 open.key"));
    int file_count = open_files();
    refuse_files("nowhere.pem", "server.key", STATUS_IO, "nowhere.pem");
    refuse_files("server.pem", "nowhere.key", STATUS_IO, "nowhere.key");
    refuse_files("server.key", "server.key", STATUS_USAGE, "no certificate in PEM, but a key");
    assert_int_equal(chmod(tls_path("client.pem"), 0600), 0);
    refuse_files("server.pem", "client.pem", STATUS_USAGE, "no private key in PEM, but a cert");
    refuse_files("server.pem", "locked.key", STATUS_USAGE, "needs a password");
    refuse_files("server.pem", "client.key", STATUS_USAGE, "can't be used with the key");
    in_a_process_of_its_own(refuse_broken_certificate);
    refuse_files("server.pem", "broken.key", STATUS_USAGE, "can't be used with the key");
    static const mode_t modes[] = {0640, 0604, 0660, 0602, 0610, 0644, 0666};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        assert_int_equal(chmod(tls_path("open.key"), modes[i]), 0);
        refuse_files("server.pem", "open.key", STATUS_USAGE, "chmod 600 ");
    }
    assert_int_equal(open_files(), file_count);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        TEST(bodies_of_all_sizes_go_round),
        TEST(many_calls_are_answered_in_any_order),
        TEST(a_reply_from_another_thread_is_sent_at_once),
        TEST(a_waiting_client_that_leaves_is_noticed),
        TEST(who_stalls_while_agreeing_on_a_session_is_dropped),
        TEST(those_who_stall_don_t_keep_others_out_for_long),
        TEST(a_client_may_be_idle_between_requests),
        TEST(a_certificate_is_trusted_only_for_its_ca_and_host),
        TEST(http_and_https_do_not_understand_each_other),
        TEST(a_ca_file_that_is_none_is_told_at_once),
        TEST(files_that_are_of_no_use_are_refused_by_name),
    };
    has_openssl = tls_world_make();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tls_world_remove();
    return failed;
}
