/* SPDX-License-Identifier: Apache-2.0 */
/* test_sentiment_file.c - a model file that the user names is read, or refused with its name.
 *
 * Method: the model of the source tree, and copies of it in a scratch folder that are cut, changed
 * or something else altogether.
 */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/exec/expr/sentiment_model.h"
#include "engine/file/file.h"
#include "engine/local/sentiment_file.h"

#define OWN_MODEL MILLRACE_SOURCE_DIR "/src/engine/exec/expr/sentiment.model"

static struct arena arena;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

static void no_file_means_the_model_in_the_program(void **state)
{
    (void)state;
    const char *const none[] = {NULL, ""};
    for (size_t i = 0; i < 2; i++) {
        const struct sentiment_model *model = &sentiment_builtin;
        struct error err;
        assert_int_equal(sentiment_file_read(none[i], &arena, &model, &err), STATUS_OK);
        assert_null(model);
    }
}

static void a_model_is_read(void **state)
{
    (void)state;
    const struct sentiment_model *model = NULL;
    struct error err;
    assert_int_equal(sentiment_file_read(OWN_MODEL, &arena, &model, &err), STATUS_OK);
    assert_true(model->checksum == sentiment_builtin.checksum);
    assert_int_equal(model->bucket_count, sentiment_builtin.bucket_count);
}

static void check_bytes(struct text bytes, const char *reason)
{
    char path[] = "/tmp/millrace-model-XXXXXX";
    const struct sentiment_model *model = &sentiment_builtin;
    struct error err;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(file_write(fd, path, bytes.bytes, bytes.size, NULL, &err), STATUS_OK);
    file_close(fd);
    assert_int_equal(sentiment_file_read(path, &arena, &model, &err), STATUS_INPUT);
    assert_int_equal(unlink(path), 0);
    assert_ptr_equal(model, &sentiment_builtin);
    assert_int_equal(strncmp(err.text, path, strlen(path)), 0);
    if (strstr(err.text, reason) == NULL) fail_msg("%s", err.text);
}

static void what_is_no_model_is_refused_by_name_and_reason(void **state)
{
    (void)state;
    struct text own;
    struct error err;
    assert_int_equal(file_read_whole(OWN_MODEL, SENTIMENT_FILE_MAX, &arena, &own, &err), STATUS_OK);
    char *changed = arena_copy_string(&arena, own);
    assert_non_null(changed);
    changed[own.size / 2] ^= 4;
    check_bytes((struct text){0}, "not a sentiment model");
    check_bytes(TEXT_LITERAL("good\t3\nbad\t-3\n"), "not a sentiment model");
    check_bytes((struct text){own.bytes, own.size - 1}, "cut off");
    check_bytes((struct text){changed, own.size}, "checksum");
    const struct sentiment_model *model;
    assert_int_equal(sentiment_file_read("/nowhere/at/all", &arena, &model, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "/nowhere/at/all"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_file_means_the_model_in_the_program),
        cmocka_unit_test(a_model_is_read),
        cmocka_unit_test(what_is_no_model_is_refused_by_name_and_reason),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
