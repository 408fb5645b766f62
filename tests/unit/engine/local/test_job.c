/* SPDX-License-Identifier: Apache-2.0 */
/* test_job.c - how large chunks are when nobody has said it.
 *
 * Method: jobs over a file of bytes that were never written, just below and at the size from which
 * on a cluster gets larger chunks; opening reads no more than its header.
 */
#include "unit/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/local/job.h"
#include "engine/local/table_files.h"

enum { LARGE_BYTES = 256 << 20 };

static char folder[] = "/tmp/millrace-test-job-XXXXXX";

static char *path_of(const char *name)
{
    static char path[sizeof folder + 32];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *content, off_t size)
{
    int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    if (size > 0) assert_int_equal(ftruncate(fd, size), 0);
    close(fd);
}

static uint32_t chunk_bytes(off_t file_size, struct job_options options)
{
    struct job *job = NULL;
    struct error err;
    write_file("t.csv", "id\n", file_size);
    options.analysis_dir = folder;
    options.data_dir = folder;
    if (job_open(&options, &job, &err) != STATUS_OK) fail_msg("%s", err.text);
    uint32_t chosen = job_chunk_bytes(job);
    assert_int_equal(job_files(job)[0].chunk_count, (file_size - 3 + chosen - 1) / chosen);
    job_close(job);
    return chosen;
}

static void large_data_gets_larger_chunks_unless_told_otherwise(void **state)
{
    (void)state;
    assert_int_equal(chunk_bytes(LARGE_BYTES - 1, (struct job_options){0}), 512 << 10);
    assert_int_equal(chunk_bytes(LARGE_BYTES, (struct job_options){0}), 4 << 20);
    struct job_options told = {.chunk_bytes = 1000};
    assert_int_equal(chunk_bytes(LARGE_BYTES, told), 1000);
}

int main(void)
{
    if (mkdtemp(folder) == NULL) return 1;
    write_file("tables.sql", "CREATE TABLE t (id INT NOT NULL) FROM 't.csv';\n", 0);
    write_file("q1.sql", "SELECT id FROM t;\n", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_data_gets_larger_chunks_unless_told_otherwise),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    static const char *const names[] = {"t.csv", "tables.sql", "q1.sql"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)unlink(path_of(names[i])); /* It may not be there. */
    }
    return rmdir(folder) != 0 || failed != 0;
}
