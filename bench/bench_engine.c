/* SPDX-License-Identifier: Apache-2.0 */
/* bench_engine.c - how fast the engine's layers are, each alone, on one core.
 *
 * `bench_engine` --help` tells the options. A case is run once to warm up, then until there were
 * enough runs and enough time, and the best counts: what disturbs a run only makes it longer. Time
 * is that of the processor, so that it matters little what else the machine does. Where even that
 * is too noisy, --instructions runs each case once under callgrind, by starting this program again
 * with --once, and counts instructions.
 */
#include "micro.h"

#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/data/csv_kernel.h"

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#define CAN_COUNT true
#else
#define CALLGRIND_TOGGLE_COLLECT ((void)0)
#define CAN_COUNT                false
#endif

enum { REPEAT_DEFAULT = 5, PATH_BYTES = 1024, COMMAND_BYTES = 2 * PATH_BYTES };

/* However few runs were asked for, so that short ones have a chance to be undisturbed. */
static const double seconds_min = 0.05;

static const struct micro_suite *const suites[] = {
    &micro_scan, &micro_filter, &micro_join, &micro_aggregate, &micro_sort, &micro_wire,
};

enum { SUITES = sizeof suites / sizeof suites[0] };

struct bench_options {
    const char *only;
    uint32_t repeat;
    bool list;
    bool json;
    bool large;
    bool instructions;
    const char *once;
};

struct figures {
    uint64_t row_count;
    uint64_t byte_count;
    uint64_t checksum;
    uint64_t run_count;
    double best_seconds;
    uint64_t instructions;
};

static const char usage[] =
    "usage: bench_engine [--list] [--only PATTERN] [--repeat N] [--large] [--json]\n"
    "                    [--instructions | --once NAME]\n"
    "\n"
    "  --list           only name the cases\n"
    "  --only PATTERN   cases with PATTERN in their name; * and ? stand for what they do in a "
    "shell\n"
    "  --repeat N       at least N runs of each case; the best counts (default 5)\n"
    "  --large          also the cases that need gigabytes of memory\n"
    "  --json           an array of objects in place of the table\n"
    "  --instructions   count instructions by valgrind's callgrind in place of time\n"
    "  --once NAME      run that case once, counting from its start to its end if under\n"
    "                   valgrind --tool=callgrind --collect-atstart=no\n"
    "\n"
    "example:\n"
    "  bench_engine --only scan/ --repeat 20\n";

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time); /* It is always there. */
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static _Noreturn void fail(const char *what, const char *which)
{
    (void)fprintf(stderr, "bench_engine: %s: %s\n", what, which);
    exit(1);
}

static void case_open(struct micro *micro, const struct micro_case *which)
{
    *micro = (struct micro){.which = which};
    which->prepare(micro);
}

static void case_close(struct micro *micro)
{
    if (micro->which->finish != NULL) micro->which->finish(micro);
    arena_done(&micro->arena);
}

static struct figures case_measure(const struct micro_case *which, uint32_t repeat)
{
    struct micro micro;
    case_open(&micro, which);
    struct figures figures = {
        .row_count = micro.row_count,
        .byte_count = micro.byte_count,
        .checksum = which->run(&micro), /* The warm-up. */
    };
    double total = 0.0;
    while (figures.run_count < repeat || total < seconds_min) {
        double start = now();
        uint64_t checksum = which->run(&micro);
        double seconds = now() - start;
        if (checksum != figures.checksum) fail("two runs gave different results", which->name);
        if (figures.run_count == 0 || seconds < figures.best_seconds) {
            figures.best_seconds = seconds;
        }
        figures.run_count++;
        total += seconds;
    }
    case_close(&micro);
    return figures;
}

/* The line that case_count reads. */
static void case_once(const struct micro_case *which)
{
    struct micro micro;
    case_open(&micro, which);
    CALLGRIND_TOGGLE_COLLECT;
    uint64_t checksum = which->run(&micro);
    CALLGRIND_TOGGLE_COLLECT;
    (void)printf("once: %" PRIu64 " rows, %" PRIu64 " bytes, checksum %016" PRIx64 "\n",
                 micro.row_count, micro.byte_count, checksum);
    case_close(&micro);
}

static struct figures case_count(const struct micro_case *which)
{
    char self[PATH_BYTES];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    if (size < 0) fail("cannot find this program", strerror(errno));
    self[size] = '\0';
    if (strchr(self, '\'') != NULL) fail("a quote in the path of this program", self);
    char command[COMMAND_BYTES];
    (void)snprintf(command, sizeof command,
                   "valgrind --tool=callgrind --collect-atstart=no --callgrind-out-file=/dev/null"
                   " '%s' --once '%s' 2>&1",
                   self, which->name);
    FILE *output = popen(command, "r");
    if (output == NULL) fail("cannot start valgrind", strerror(errno));
    struct figures figures = {.run_count = 1};
    char line[COMMAND_BYTES];
    char last[COMMAND_BYTES] = "it said nothing";
    while (fgets(line, sizeof line, output) != NULL) {
        const char *counted = strstr(line, "Collected : ");
        if (counted != NULL) {
            figures.instructions = strtoull(counted + strlen("Collected : "), NULL, 10);
        } else if (sscanf(line, "once: %" SCNu64 " rows, %" SCNu64 " bytes, checksum %" SCNx64,
                          &figures.row_count, &figures.byte_count, &figures.checksum) != 3) {
            (void)snprintf(last, sizeof last, "%s", line);
        }
    }
    int code = pclose(output);
    if (code != 0 || figures.instructions == 0 || figures.row_count == 0) {
        fail("valgrind failed (is it installed?)", last);
    }
    return figures;
}

static void print_head(const struct bench_options *options)
{
    if (options->json) {
        (void)printf("[");
    } else if (options->instructions) {
        (void)printf("%-28s %10s %10s %14s %10s %10s  %s\n", "", "rows", "MB", "instructions",
                     "per row", "per byte", "checksum");
    } else {
        (void)printf("CSV kernel: %s\n", csv_kernel_get()->name);
        (void)printf("%-28s %10s %10s %10s %10s %10s  %s\n", "", "rows", "MB", "ns/row", "GB/s",
                     "M rows/s", "checksum");
    }
}

static void print_line(const struct bench_options *options, const char *name,
                       const struct figures *at)
{
    double rows = (double)at->row_count;
    double bytes = (double)at->byte_count;
    if (options->instructions) {
        double instructions = (double)at->instructions;
        (void)printf("%-28s %10" PRIu64 " %10.1f %14" PRIu64 " %10.2f %10.3f  %016" PRIx64 "\n",
                     name, at->row_count, bytes / 1e6, at->instructions, instructions / rows,
                     instructions / bytes, at->checksum);
    } else {
        (void)printf("%-28s %10" PRIu64 " %10.1f %10.2f %10.3f %10.2f  %016" PRIx64 "\n", name,
                     at->row_count, bytes / 1e6, at->best_seconds * 1e9 / rows,
                     bytes / at->best_seconds / 1e9, rows / at->best_seconds / 1e6, at->checksum);
    }
}

static void print_object(const struct bench_options *options, const char *name,
                         const struct figures *at)
{
    double rows = (double)at->row_count;
    double bytes = (double)at->byte_count;
    (void)printf("{\"name\": \"%s\", \"rows\": %" PRIu64 ", \"bytes\": %" PRIu64
                 ", \"runs\": %" PRIu64 ", ",
                 name, at->row_count, at->byte_count, at->run_count);
    if (options->instructions) {
        (void)printf("\"instructions\": %" PRIu64 ", \"instructions_per_row\": %.4f, ",
                     at->instructions, (double)at->instructions / rows);
    } else {
        (void)printf("\"best_ns_per_row\": %.4f, \"gb_per_second\": %.4f, "
                     "\"million_rows_per_second\": %.4f, ",
                     at->best_seconds * 1e9 / rows, bytes / at->best_seconds / 1e9,
                     rows / at->best_seconds / 1e6);
    }
    (void)printf("\"checksum\": \"%016" PRIx64 "\"}", at->checksum);
}

static bool is_wanted(const struct bench_options *options, const struct micro_case *which)
{
    char pattern[PATH_BYTES];
    if (which->large && !options->large) return false;
    if (options->only == NULL) return true;
    (void)snprintf(pattern, sizeof pattern, "*%s*", options->only);
    return fnmatch(pattern, which->name, 0) == 0;
}

static uint32_t measure_all(const struct bench_options *options)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < SUITES; i++) {
        for (uint32_t j = 0; j < suites[i]->count; j++) {
            const struct micro_case *which = &suites[i]->cases[j];
            if (!is_wanted(options, which)) continue;
            if (options->list) {
                (void)printf("%s\n", which->name);
                count++;
                continue;
            }
            if (count == 0) print_head(options);
            struct figures figures =
                options->instructions ? case_count(which) : case_measure(which, options->repeat);
            if (options->json) {
                (void)printf(count == 0 ? "\n" : ",\n");
                print_object(options, which->name, &figures);
            } else {
                print_line(options, which->name, &figures);
            }
            (void)fflush(stdout); /* For a person who watches; a failure is seen at the end. */
            count++;
        }
    }
    if (options->json && !options->list && count > 0) (void)printf("\n]\n");
    return count;
}

static const struct micro_case *find_case(const char *name)
{
    for (uint32_t i = 0; i < SUITES; i++) {
        for (uint32_t j = 0; j < suites[i]->count; j++) {
            if (strcmp(suites[i]->cases[j].name, name) == 0) return &suites[i]->cases[j];
        }
    }
    fail("no such case (--list --large names them all)", name);
}

static uint32_t read_repeat(const char *string)
{
    char *end;
    unsigned long number = strtoul(string, &end, 10);
    if (*end != '\0' || end == string || number == 0 || number > 1000000) {
        fail("--repeat wants a number from 1 to 1000000", string);
    }
    return (uint32_t)number;
}

static struct bench_options read_options(int argc, char **argv)
{
    static const struct option names[] = {
        {"list", no_argument, NULL, 'l'},
        {"only", required_argument, NULL, 'o'},
        {"repeat", required_argument, NULL, 'r'},
        {"large", no_argument, NULL, 'L'},
        {"json", no_argument, NULL, 'j'},
        {"instructions", no_argument, NULL, 'i'},
        {"once", required_argument, NULL, 'O'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct bench_options options = {.repeat = REPEAT_DEFAULT};
    int name;
    while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (name == 'l') options.list = true;
        if (name == 'o') options.only = optarg;
        if (name == 'r') options.repeat = read_repeat(optarg);
        if (name == 'L') options.large = true;
        if (name == 'j') options.json = true;
        if (name == 'i') options.instructions = true;
        if (name == 'O') options.once = optarg;
        if (name == 'h' || name == '?') {
            (void)fputs(usage, name == 'h' ? stdout : stderr);
            exit(name == 'h' ? 0 : 2);
        }
    }
    if (optind < argc) fail("not an option", argv[optind]);
    return options;
}

int main(int argc, char **argv)
{
    struct bench_options options = read_options(argc, argv);
    if (options.instructions && !CAN_COUNT) {
        fail("built without valgrind/callgrind.h", "install valgrind and build again");
    }
    if (options.once != NULL) {
        case_once(find_case(options.once));
    } else if (measure_all(&options) == 0) {
        fail("no case has that in its name", options.only);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) fail("cannot write", strerror(errno));
    return 0;
}
