/* SPDX-License-Identifier: Apache-2.0 */
/* test_driver.c - each kind of driver does to a node what it is asked, tells what went wrong, and
 * is never longer at it than it may.
 *
 * Method: for `process`, this program is the node: started with a role as its first word it takes
 * the lock of its folder and writes down what it was given, or fails as its name says. For
 * `command`, shell lines that write files, fail, hang and leave others behind. For `docker`, an
 * engine that is a thread of the test, with one canned answer.
 */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/file/clock.h"
#include "engine/file/file.h"
#include "engine/file/file_tree.h"
#include "cluster/store/folder_lock.h"
#include "cluster/supervise/spawn.h"
#include "cluster/supervise/driver.h"

enum { LONG_MS = 20000, SHORT_MS = 300 };

static char folder[64];
static char program[4096];
static struct arena arena;
static struct cluster_config config;
static struct driver *driver;
static struct error err;

static const struct config_endpoint gateways[] = {{"g1", "127.0.0.1", 1}};
static const struct config_endpoint monitors[] = {{"m1", "127.0.0.1", 2}};
static const struct config_worker workers[] = {
    {"w1", "127.0.0.1", true, true},    {"w2", "127.0.0.1", true, true},
    {"fails", "127.0.0.1", true, true}, {"idles", "127.0.0.1", true, true},
    {"away", "192.0.2.1", true, true},
};

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/millrace-test-XXXXXX"); /* Fits. */
    arena = (struct arena){0};
    if (mkdtemp(folder) == NULL) return -1;
    config = (struct cluster_config){
        .path = "cluster.ini",
        .name = "demo",
        .data_dir = folder,
        .starts_broker = true,
        .gateways = gateways,
        .gateway_count = 1,
        .workers = workers,
        .worker_count = 5,
        .monitors = monitors,
        .monitor_count = 1,
        .driver_timeout_ms = scaled_ms(LONG_MS),
        .docker_socket = "/nowhere/docker.sock",
    };
    driver = NULL;
    return setenv("TEST_FOLDER", folder, 1);
}

static int tear_down(void **state)
{
    (void)state;
    driver_close(driver);
    arena_done(&arena);
    return file_tree_remove(folder, &err) == STATUS_OK ? 0 : -1;
}

static void open_driver(struct driver_options options)
{
    options.config = &config;
    options.program = program;
    assert_int_equal(driver_open(&options, &driver, &err), STATUS_OK);
}

static void act(enum driver_action action, const char *node)
{
    status result = driver_do(driver, action, node, &err);
    if (result != STATUS_OK) print_error("%s\n", err.text);
    assert_int_equal(result, STATUS_OK);
}

static const char *in_folder(const char *name)
{
    const char *path = file_path(folder, text_of(name), &arena);
    assert_non_null(path);
    return path;
}

static const char *content(const char *name)
{
    struct text text;
    assert_int_equal(file_read_whole(in_folder(name), 1 << 16, &arena, &text, &err), STATUS_OK);
    return text.bytes;
}

static pid_t holder_of(const char *node)
{
    pid_t pid = 0;
    return folder_lock_holder(in_folder(node), &pid) ? pid : 0;
}

static char state_of(pid_t pid)
{
    char path[64];
    char text[512] = "";
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid); /* Fits. */
    FILE *file = fopen(path, "r");
    if (file == NULL) return 'X';
    size_t size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    (void)fclose(file);
    const char *end = strrchr(text, ')');
    return end == NULL ? 'X' : end[2];
}

static void wait_for_state(pid_t pid, char wanted)
{
    uint64_t deadline_ms = clock_ms() + scaled_ms(LONG_MS);
    while (state_of(pid) != wanted) {
        assert_true(clock_ms() < deadline_ms);
        (void)poll(NULL, 0, 5); /* Looks again soon. */
    }
}

/* ---- this program as a node ---- */

static int be_node(int argc, char **argv)
{
    char home[256];
    char path[264 + 16];
    struct folder_lock *lock;
    const char *name = "none";
    for (int i = 2; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--name") == 0) name = argv[i + 1];
    }
    (void)snprintf(home, sizeof home, "%s/%s", getenv("TEST_FOLDER"), name);
    if (strcmp(name, "idles") == 0) {
        (void)poll(NULL, 0, (int)scaled_ms(LONG_MS)); /* It never takes its folder. */
        return 0;
    }
    /* Whoever sees the lock reads what is written here, so that comes first. */
    bool is_made;
    if (file_make_folder(home, &is_made, &err) != STATUS_OK) return 3;
    (void)snprintf(path, sizeof path, "%s/log", home);
    FILE *file = fopen(path, "w");
    if (file == NULL) return 4;
    for (int i = 1; i < argc; i++) {
        (void)fprintf(file, "%s ", argv[i]);
    }
    const char *crash = getenv("MILLRACE_CRASH");
    (void)fprintf(file, "crash=%s\n", crash == NULL ? "none" : crash);
    if (fclose(file) != 0) return 4;
    const char *tail = strcmp(name, "broker") == 0 ? "/supervisor" : "";
    (void)snprintf(path, sizeof path, "%s%s", home, tail);
    if (folder_lock_open(path, 0, &lock, &err) != STATUS_OK) return 3;
    if (strcmp(name, "fails") == 0) {
        folder_lock_close(lock);
        return 7;
    }
    (void)poll(NULL, 0, (int)scaled_ms(LONG_MS));
    return 0;
}

/* ---- process ---- */

static struct spawn_end last_end;
static char last_ended[64];

static void on_ended(void *context, const char *node, const struct spawn_end *end)
{
    (void)context;
    last_end = *end;
    (void)snprintf(last_ended, sizeof last_ended, "%s", node); /* Fits. */
}

static void wait_for_end_of(const char *node)
{
    uint64_t deadline_ms = clock_ms() + scaled_ms(LONG_MS);
    last_ended[0] = '\0';
    while (strcmp(last_ended, node) != 0) {
        assert_true(clock_ms() < deadline_ms);
        driver_sweep(driver);
        (void)poll(NULL, 0, 5); /* Looks again soon. */
    }
}

static void a_started_node_runs_detached_and_is_killed_by_its_lock(void **state)
{
    (void)state;
    open_driver((struct driver_options){.ended = on_ended});
    act(DRIVER_START, "w1");
    pid_t first = holder_of("w1");
    assert_true(first > 0);
    assert_int_equal(getsid(first), first);
    assert_int_equal(driver_do(driver, DRIVER_START, "w1", &err), STATUS_IO);
    assert_non_null(strstr(err.text, "w1 runs already, as process "));
    act(DRIVER_START, "w2");
    act(DRIVER_KILL, "w1");
    assert_int_equal(holder_of("w1"), 0);
    wait_for_end_of("w1");
    assert_int_equal(last_end.signal, SIGKILL);
    act(DRIVER_KILL, "w1"); /* It does not run. */
    act(DRIVER_START, "w1");
    assert_true(holder_of("w1") != first);
    act(DRIVER_KILL, "w1");
    act(DRIVER_KILL, "w2");
}

static void another_driver_finds_what_this_one_started(void **state)
{
    (void)state;
    open_driver((struct driver_options){.ended = on_ended});
    act(DRIVER_START, "broker");
    struct driver *first = driver;
    open_driver((struct driver_options){.ended = NULL});
    act(DRIVER_KILL, "broker");
    assert_int_equal(holder_of("broker/supervisor"), 0);
    driver_close(driver);
    driver = first;
    wait_for_end_of("broker");
}

static void a_node_is_paused_resumed_and_stopped(void **state)
{
    (void)state;
    open_driver((struct driver_options){.ended = on_ended});
    assert_int_equal(driver_do(driver, DRIVER_PAUSE, "g1", &err), STATUS_IO);
    assert_non_null(strstr(err.text, "g1 does not run"));
    act(DRIVER_STOP, "g1");
    act(DRIVER_START, "g1");
    pid_t pid = holder_of("g1");
    act(DRIVER_PAUSE, "g1");
    wait_for_state(pid, 'T');
    act(DRIVER_RESUME, "g1");
    wait_for_state(pid, 'S');
    act(DRIVER_PAUSE, "g1");
    wait_for_state(pid, 'T');
    act(DRIVER_STOP, "g1"); /* Also a stopped one hears it. */
    wait_for_end_of("g1");
    assert_int_equal(last_end.signal, SIGTERM);
}

static void nodes_are_given_their_words_and_counted_crashes_only_once(void **state)
{
    (void)state;
    assert_int_equal(setenv("MILLRACE_CRASH", "after-log@w1:5,before-log:p0.5,x:p0.5:7", 1), 0);
    open_driver((struct driver_options){.log_level = "debug", .supervisor_link = "/a/leash"});
    act(DRIVER_START, "m1");
    assert_string_equal(content("m1/log"),
                        "monitor --config cluster.ini --name m1 --log-level debug "
                        "--exit-with-supervisor /a/leash crash=before-log:p0.5\n");
    act(DRIVER_KILL, "m1");
    driver_close(driver);
    open_driver((struct driver_options){.is_first_incarnation = true});
    act(DRIVER_START, "m1");
    assert_string_equal(content("m1/log"), "monitor --config cluster.ini --name m1 "
                                           "crash=after-log@w1:5,before-log:p0.5,x:p0.5:7\n");
    act(DRIVER_KILL, "m1");
    assert_int_equal(unsetenv("MILLRACE_CRASH"), 0);
}

static void a_start_that_fails_says_how_and_shows_the_log(void **state)
{
    (void)state;
    open_driver((struct driver_options){.ended = NULL});
    /* It may be seen with its lock before it ends: then its end is told by the sweep. */
    status result = driver_do(driver, DRIVER_START, "fails", &err);
    if (result != STATUS_OK) {
        assert_non_null(strstr(err.text, "fails ended with code 7 at its start"));
        assert_non_null(strstr(err.text, "fails/log ends with\nworker --config"));
    }
    config.driver_timeout_ms = scaled_ms(SHORT_MS);
    assert_int_equal(driver_do(driver, DRIVER_START, "idles", &err), STATUS_IO);
    assert_non_null(strstr(err.text, "idles did not take its folder"));
    assert_int_equal(driver_do(driver, DRIVER_START, "nobody", &err), STATUS_USAGE);
    assert_non_null(strstr(err.text, "cluster.ini has no node `nobody`"));
}

static void somebody_else_who_has_the_lock_is_left_alone(void **state)
{
    (void)state;
    static const enum driver_action actions[] = {DRIVER_STOP, DRIVER_KILL, DRIVER_PAUSE,
                                                 DRIVER_RESUME};
    open_driver((struct driver_options){.ended = NULL});
    pid_t bystander = fork();
    assert_true(bystander >= 0);
    if (bystander == 0) {
        for (;;) {
            (void)pause(); /* Until killed. */
        }
    }
    wait_for_state(bystander, 'S');
    assert_int_equal(mkdir(in_folder("w1"), 0777), 0);
    FILE *file = fopen(in_folder("w1/pid"), "w");
    assert_non_null(file);
    assert_true(fprintf(file, "%ld\n", (long)bystander) > 0);
    assert_int_equal(fclose(file), 0);
    int fd = open(in_folder("w1/lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        assert_int_equal(driver_do(driver, actions[i], "w1", &err), STATUS_IO);
        assert_non_null(strstr(err.text, "w1 is in use by a process that this host does not know"));
        assert_int_equal(state_of(bystander), 'S');
    }
    assert_int_equal(close(fd), 0);
    assert_int_equal(waitpid(bystander, NULL, WNOHANG), 0);
    assert_int_equal(kill(bystander, SIGKILL), 0);
    assert_int_equal(waitpid(bystander, NULL, 0), bystander);
}

static void a_node_of_another_host_is_not_started_here(void **state)
{
    (void)state;
    open_driver((struct driver_options){.ended = NULL});
    assert_int_equal(driver_do(driver, DRIVER_START, "away", &err), STATUS_USAGE);
    assert_non_null(strstr(err.text, "away can't be started here: 192.0.2.1 is no address of this "
                                     "host; set [monitors] driver = command"));
    assert_int_equal(holder_of("away"), 0);
    act(DRIVER_KILL, "away"); /* It does not run here. */
}

static void a_program_that_is_not_there_is_named(void **state)
{
    (void)state;
    struct driver_options options = {.config = &config, .program = "/nowhere/millrace"};
    assert_int_equal(driver_open(&options, &driver, &err), STATUS_OK);
    assert_int_equal(driver_do(driver, DRIVER_START, "w1", &err), STATUS_IO);
    assert_non_null(strstr(err.text, "cannot start /nowhere/millrace"));
}

/* ---- command ---- */

static void use_commands(const char *start, const char *kill)
{
    config.driver = CONFIG_DRIVER_COMMAND;
    config.start_command = start;
    config.kill_command = kill;
    open_driver((struct driver_options){.ended = NULL});
}

static void commands_are_run_with_the_name_filled_in(void **state)
{
    (void)state;
    use_commands("echo 100%% start %n, %n > $TEST_FOLDER/said",
                 "echo %x kill %n > $TEST_FOLDER/said");
    act(DRIVER_START, "w1");
    assert_string_equal(content("said"), "100% start w1, w1\n");
    act(DRIVER_KILL, "broker");
    assert_string_equal(content("said"), "%x kill broker\n");
    config.start_command = "echo %h %%h %n > $TEST_FOLDER/said";
    act(DRIVER_START, "w1");
    assert_string_equal(content("said"), "127.0.0.1 %h w1\n");
}

static void a_command_that_fails_is_told_with_its_last_words(void **state)
{
    (void)state;
    use_commands("for i in $(seq 1000); do echo word$i; done >&2; echo 'no such unit' >&2; exit 5",
                 "kill -9 $$");
    assert_int_equal(driver_do(driver, DRIVER_START, "w1", &err), STATUS_IO);
    assert_non_null(strstr(err.text, "start_command for w1 ended with code 5: "));
    assert_non_null(strstr(err.text, " word1000 no such unit"));
    assert_null(strstr(err.text, "word900"));
    assert_int_equal(driver_do(driver, DRIVER_KILL, "w1", &err), STATUS_IO);
    assert_non_null(strstr(err.text, "kill_command for w1 was killed by signal 9"));
}

static void a_command_that_hangs_is_killed_with_all_it_started(void **state)
{
    (void)state;
    config.driver_timeout_ms = scaled_ms(SHORT_MS);
    use_commands("sleep 1000 & echo $! > $TEST_FOLDER/pid; wait", "true");
    uint64_t begin_ms = clock_ms();
    assert_int_equal(driver_do(driver, DRIVER_START, "w1", &err), STATUS_LIMIT);
    assert_true(clock_ms() - begin_ms < scaled_ms(LONG_MS) / 2);
    char words[64];
    (void)snprintf(words, sizeof words, "it took longer than %u ms",
                   scaled_ms(SHORT_MS)); /* Fits. */
    assert_non_null(strstr(err.text, words));
    pid_t pid = (pid_t)atol(content("pid"));
    uint64_t deadline_ms = clock_ms() + scaled_ms(LONG_MS);
    while (state_of(pid) != 'X' && state_of(pid) != 'Z') {
        assert_true(clock_ms() < deadline_ms);
        (void)poll(NULL, 0, 5); /* Looks again soon. */
    }
}

static void a_kill_that_says_no_does_not_end_a_restart(void **state)
{
    (void)state;
    use_commands("touch $TEST_FOLDER/started", "echo 'nothing runs' >&2; exit 1");
    assert_int_equal(driver_restart(driver, "w1", &err), STATUS_OK);
    assert_true(file_exists(in_folder("started")));
    /* Both are told if neither works; */
    config.start_command = "echo 'no such host' >&2; exit 2";
    assert_int_equal(driver_restart(driver, "w1", &err), STATUS_IO);
    assert_string_equal(err.text, "start_command for w1 ended with code 2: no such host; before "
                                  "that, kill_command for w1 ended with code 1: nothing runs");
    config.kill_command = "true";
    assert_int_equal(driver_restart(driver, "w1", &err), STATUS_IO);
    assert_null(strstr(err.text, "kill_command"));
    /* and after a kill that hangs nothing is tried. */
    config.driver_timeout_ms = scaled_ms(SHORT_MS);
    config.kill_command = "sleep 1000";
    config.start_command = "touch $TEST_FOLDER/again";
    assert_int_equal(driver_restart(driver, "w1", &err), STATUS_LIMIT);
    assert_non_null(strstr(err.text, "kill_command"));
    assert_false(file_exists(in_folder("again")));
}

static void a_command_that_closes_its_stderr_is_waited_for_in_peace(void **state)
{
    (void)state;
    use_commands("exec 2>&-; sleep 1", "echo in >&2; sleep 0.2; echo parts >&2; exit 1");
    double before = clock_cpu_seconds();
    act(DRIVER_START, "w1");
    assert_true(clock_cpu_seconds() - before < 0.2);
    assert_int_equal(driver_do(driver, DRIVER_KILL, "w1", &err), STATUS_IO);
    assert_non_null(strstr(err.text, "code 1: in parts"));
}

static void what_a_command_leaves_running_is_left_alone(void **state)
{
    (void)state;
    use_commands("sleep 1000 & echo $! > $TEST_FOLDER/pid", "kill $(cat $TEST_FOLDER/pid)");
    uint64_t begin_ms = clock_ms();
    act(DRIVER_START, "w1");
    assert_true(clock_ms() - begin_ms < scaled_ms(LONG_MS) / 2);
    pid_t pid = (pid_t)atol(content("pid"));
    assert_true(state_of(pid) != 'X' && state_of(pid) != 'Z');
    act(DRIVER_KILL, "w1");
}

static void commands_that_are_not_given_are_asked_for(void **state)
{
    (void)state;
    use_commands("true", "true");
    assert_int_equal(driver_do(driver, DRIVER_PAUSE, "w1", &err), STATUS_USAGE);
    assert_non_null(strstr(err.text, "cluster.ini: [monitors] has no pause_command"));
    assert_int_equal(driver_do(driver, DRIVER_RESUME, "w1", &err), STATUS_USAGE);
    assert_int_equal(driver_do(driver, DRIVER_STOP, "w1", &err), STATUS_USAGE);
    config.pause_command = "true";
    act(DRIVER_PAUSE, "w1");
}

static void a_name_that_could_mean_something_to_a_shell_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"a b", "a;b", "$a", "`a`", "a'b", "-rf", "a\nb", "a*"};
    use_commands("touch $TEST_FOLDER/touched", "true");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct config_worker worker = {names[i], "127.0.0.1", true, true};
        config.workers = &worker;
        config.worker_count = 1;
        driver_close(driver);
        open_driver((struct driver_options){.ended = NULL});
        assert_int_equal(driver_do(driver, DRIVER_START, names[i], &err), STATUS_USAGE);
    }
    assert_false(file_exists(in_folder("touched")));
}

/* ---- docker ---- */

struct fake_docker {
    int listener;
    const char *answer; /* NULL: it never answers. */
    char asked[4096];
};

static void *engine_run(void *argument)
{
    struct fake_docker *engine = argument;
    struct pollfd waits = {.fd = engine->listener, .events = POLLIN};
    assert_int_equal(poll(&waits, 1, (int)scaled_ms(LONG_MS)), 1);
    int fd = accept(engine->listener, NULL, NULL);
    assert_true(fd >= 0);
    ssize_t size = recv(fd, engine->asked, sizeof engine->asked - 1, 0);
    assert_true(size > 0);
    engine->asked[size] = '\0';
    if (engine->answer != NULL) {
        size_t length = strlen(engine->answer);
        assert_int_equal(send(fd, engine->answer, length, MSG_NOSIGNAL), length);
    } else {
        waits = (struct pollfd){.fd = fd, .events = POLLIN};
        (void)poll(&waits, 1, (int)scaled_ms(LONG_MS)); /* Until the other side gives up. */
    }
    (void)close(fd); /* Nothing is lost. */
    return NULL;
}

static status ask_docker(struct fake_docker *engine, enum driver_action action, const char *node)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    pthread_t thread;
    config.driver = CONFIG_DRIVER_DOCKER;
    config.docker_socket = in_folder("docker.sock");
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", config.docker_socket);
    (void)unlink(config.docker_socket); /* Of the one before. */
    engine->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(engine->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(engine->listener, 1), 0);
    assert_int_equal(pthread_create(&thread, NULL, engine_run, engine), 0);
    driver_close(driver);
    open_driver((struct driver_options){.ended = NULL});
    status result = driver_do(driver, action, node, &err);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(engine->listener);
    return result;
}

static void the_engine_is_asked_for_the_container_of_the_node(void **state)
{
    (void)state;
    static const char *const lines[DRIVER_ACTIONS] = {
        [DRIVER_START] = "POST /containers/demo-w1/start HTTP/1.1\r\n",
        [DRIVER_KILL] = "POST /containers/demo-w1/kill?signal=KILL HTTP/1.1\r\n",
        [DRIVER_PAUSE] = "POST /containers/demo-w1/pause HTTP/1.1\r\n",
        [DRIVER_RESUME] = "POST /containers/demo-w1/unpause HTTP/1.1\r\n",
        [DRIVER_STOP] = "POST /containers/demo-w1/kill?signal=TERM HTTP/1.1\r\n",
    };
    for (int action = 0; action < DRIVER_ACTIONS; action++) {
        struct fake_docker engine = {.answer = "HTTP/1.1 204 No Content\r\n\r\n"};
        assert_int_equal(ask_docker(&engine, (enum driver_action)action, "w1"), STATUS_OK);
        assert_memory_equal(engine.asked, lines[action], strlen(lines[action]));
    }
}

static void what_the_engine_answers_is_understood(void **state)
{
    (void)state;
    struct fake_docker already = {.answer = "HTTP/1.1 304 Not Modified\r\n\r\n"};
    assert_int_equal(ask_docker(&already, DRIVER_START, "w1"), STATUS_OK);
    struct fake_docker missing = {.answer =
                                      "HTTP/1.1 404 Not Found\r\nContent-Length: 46\r\n\r\n"
                                      "{\"message\":\"No such container: demo-w1\",\"a\":1}\n"};
    assert_int_equal(ask_docker(&missing, DRIVER_START, "w1"), STATUS_IO);
    assert_non_null(strstr(err.text, "container demo-w1: Docker answers 404: No such container"));
    assert_null(strstr(err.text, "message"));
    struct fake_docker down = {.answer =
                                   "HTTP/1.1 409 Conflict\r\nContent-Length: 8\r\n\r\nnot down"};
    assert_int_equal(ask_docker(&down, DRIVER_KILL, "w1"), STATUS_OK);
    assert_int_equal(ask_docker(&down, DRIVER_PAUSE, "w1"), STATUS_IO);
    assert_non_null(strstr(err.text, "answers 409: not down"));
}

static void an_engine_that_hangs_or_is_not_there_is_told_in_time(void **state)
{
    (void)state;
    config.driver_timeout_ms = scaled_ms(SHORT_MS);
    struct fake_docker silent = {.answer = NULL};
    uint64_t begin_ms = clock_ms();
    assert_int_equal(ask_docker(&silent, DRIVER_START, "w1"), STATUS_IO);
    assert_true(clock_ms() - begin_ms < scaled_ms(LONG_MS) / 2);
    config.docker_socket = "/nowhere/docker.sock";
    assert_int_equal(driver_do(driver, DRIVER_START, "w1", &err), STATUS_IO);
    assert_non_null(strstr(err.text, "/nowhere/docker.sock: "));
}

int main(int argc, char **argv)
{
    if (argc > 1 && argv[1][0] != '-') return be_node(argc, argv);
    if (spawn_self(program, sizeof program, &err) != STATUS_OK) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_started_node_runs_detached_and_is_killed_by_its_lock,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_driver_finds_what_this_one_started, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_node_is_paused_resumed_and_stopped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nodes_are_given_their_words_and_counted_crashes_only_once,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_start_that_fails_says_how_and_shows_the_log, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(somebody_else_who_has_the_lock_is_left_alone, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_node_of_another_host_is_not_started_here, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_program_that_is_not_there_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(commands_are_run_with_the_name_filled_in, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_command_that_fails_is_told_with_its_last_words, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_command_that_hangs_is_killed_with_all_it_started, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_kill_that_says_no_does_not_end_a_restart, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_command_that_closes_its_stderr_is_waited_for_in_peace,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_command_leaves_running_is_left_alone, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(commands_that_are_not_given_are_asked_for, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_name_that_could_mean_something_to_a_shell_is_refused,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_engine_is_asked_for_the_container_of_the_node, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_the_engine_answers_is_understood, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_engine_that_hangs_or_is_not_there_is_told_in_time,
                                        set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
