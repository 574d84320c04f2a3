/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of traces: what each field becomes, and what is refused, with its place. */
#include "scheduler/sim/trace.h"
#include "tests/lib/assert.h"
#include "tests/lib/tempdir.h"

#include <archive.h>
#include <archive_entry.h>
#include <unistd.h>

#define SWF_LINE "7 100 5 60 4 30 2048 8 120 4096 1 3 2 9 1 1 -1 -1\n"
#define GWA_HEAD                                                                                   \
    "Timestamp [ms];\tCPU cores;\tCPU capacity provisioned [MHZ];\tCPU usage [MHZ];\tCPU usage "   \
    "[%];\tMemory capacity provisioned [KB];\tMemory usage [KB];\tDisk read throughput "           \
    "[KB/s];\tDisk write throughput [KB/s];\tNetwork received throughput [KB/s];\tNetwork "        \
    "transmitted throughput [KB/s]\n"
#define E_LINE(number, etime, nodes, used)                                                         \
    "10/01/2017 00:01:38;E;" number ".m1;user=a group=g jobname=x etime=" etime                    \
    " start=1100 exec_host=c3/0-3,31+c4/1 Resource_List.nodes=" nodes                              \
    " Resource_List.vmem=8gb Resource_List.walltime=08:00:00 end=1200 " used "\n"

typedef enum { PLAIN, GZIP, XZ, BZIP2, ZSTD } Filter;

/* FILES: name and text in turn, until NULL; a NULL name writes no tar but the text itself. */
static char *write_archive(const char *dir, Filter filter, const char *const *files)
{
    char *path = g_build_filename(dir, "trace", NULL);
    struct archive *archive = archive_write_new();
    gboolean raw = files[0] == NULL;
    if (filter == GZIP)
        archive_write_add_filter_gzip(archive);
    else if (filter == XZ)
        archive_write_add_filter_xz(archive);
    else if (filter == BZIP2)
        archive_write_add_filter_bzip2(archive);
    else if (filter == ZSTD)
        archive_write_add_filter_zstd(archive);
    if (raw)
        archive_write_set_format_raw(archive);
    else
        archive_write_set_format_pax(archive);
    assert_int_equal(archive_write_open_filename(archive, path), ARCHIVE_OK);
    for (guint i = 0; i == 0 || files[i] != NULL; i += 2) {
        struct archive_entry *entry = archive_entry_new();
        archive_entry_set_pathname(entry, raw ? "data" : files[i]);
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, 0644);
        archive_entry_set_size(entry, (la_int64_t)strlen(files[i + 1]));
        assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
        archive_write_data(archive, files[i + 1], strlen(files[i + 1]));
        archive_entry_free(entry);
        if (raw)
            break;
    }
    archive_write_close(archive);
    archive_write_free(archive);
    return path;
}

static SimTrace *open_text(const char *dir, const char *text, SimFormat format, GError **error)
{
    const char *files[] = {NULL, text, NULL};
    g_autofree char *path = write_archive(dir, PLAIN, files);
    const char *paths[] = {path, NULL};
    return sim_trace_open(paths, format, error);
}

/* All jobs of the trace, or the error at which it ends. */
static GArray *read_jobs(SimTrace *trace, GError **error)
{
    g_autoptr(GArray) jobs = g_array_new(FALSE, FALSE, sizeof(SimTraceJob));
    for (;;) {
        SimTraceJob job;
        gboolean end;
        if (!sim_trace_next(trace, &job, &end, error))
            return NULL;
        if (end)
            return g_steal_pointer(&jobs);
        g_array_append_val(jobs, job);
    }
}

#define JOB(jobs, i) g_array_index(jobs, SimTraceJob, i)

static void swf_line_gives_every_field(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SimTrace) trace = open_text(*state, "; MaxNodes: 16\n;  MaxProcs: 64\n;\n\n" SWF_LINE,
                                          SIM_FORMAT_AUTO, &error);
    assert_no_error(error);
    g_autoptr(GArray) jobs = read_jobs(trace, &error);
    assert_no_error(error);
    assert_int_equal(sim_trace_format(trace), SIM_FORMAT_SWF);
    assert_int_equal(jobs->len, 1);
    const SimTraceJob *job = &JOB(jobs, 0);
    assert_int_equal(job->number, 7);
    assert_int_equal(job->submit_sec, 100);
    assert_int_equal(job->run_sec, 60);
    assert_int_equal(job->limit_sec, 120);
    assert_int_equal(job->procs, 4); /* allocated, not asked for */
    assert_int_equal(job->nodes, 0);
    assert_int_equal(job->cpu_sec, 30 * 4);
    assert_int_equal(job->memory_kib, 4096 * 4);
    assert_int_equal(job->memory_used_kib, 2048 * 4);
    assert_int_equal(job->user, 3);
    assert_int_equal(job->name, 9);
    assert_int_equal(sim_trace_machine(trace).nodes, 16);
    assert_int_equal(sim_trace_machine(trace).procs, 64);
}

static void swf_unknown_is_unknown_and_what_never_ran_is_counted(void **state)
{
    static const char text[] = "1 0 -1 10 -1 -1 -1 8 -1 -1 1 1 1 -1 1 -1 -1 -1\n"
                               "2 0 -1 0 4 -1 -1 4 60 -1 5 1 1 -1 1 -1 -1 -1\n"
                               "3 0 -1 -1 4 -1 -1 4 60 -1 5 1 1 -1 1 -1 -1 -1\n"
                               "4 0 -1 9 -1 -1 -1 -1 60 -1 5 1 1 -1 1 -1 -1 -1\r\n"
                               "5 1 -1 10.75 2.0 3.5 -1 8 -1 -1 1 1 1 -1 1 -1 -1 -1";
    g_autoptr(GError) error = NULL;
    g_autoptr(SimTrace) trace = open_text(*state, text, SIM_FORMAT_AUTO, &error);
    assert_no_error(error);
    for (guint pass = 0; pass < 2; pass++) {
        g_autoptr(GArray) jobs = read_jobs(trace, &error);
        assert_no_error(error);
        assert_int_equal(jobs->len, 2);
        assert_int_equal(JOB(jobs, 0).procs, 8);
        assert_int_equal(JOB(jobs, 0).cpu_sec, -1);
        assert_int_equal(JOB(jobs, 0).memory_kib, 0);
        assert_int_equal(JOB(jobs, 0).limit_sec, 0);
        assert_int_equal(JOB(jobs, 1).run_sec, 10);
        assert_int_equal(JOB(jobs, 1).cpu_sec, 6);
        assert_int_equal(sim_trace_n_never_ran(trace), 3);
        assert_true(sim_trace_rewind(trace, &error));
    }
}

static void bad_lines_are_refused_with_their_place(void **state)
{
    static const struct {
        const char *text;
        SimFormat format;
        const char *expected;
    } cases[] = {
        {SWF_LINE "1 2 3\n", SIM_FORMAT_AUTO, "trace:2: 3 fields, where SWF has 18"},
        {SWF_LINE "1 200 5 60 4 30 2048 8 120 4096 1 3 2 9 1 1 -1 -1 0\n", SIM_FORMAT_AUTO,
         "trace:2: more than the 18 fields"},
        {";\n\n1 x 5 60 4 30 2048 8 120 4096 1 3 2 9 1 1 -1 -1\n", SIM_FORMAT_SWF,
         "trace:3: field 2 (submit time): \"x\" is no number"},
        {";\n\377\001a0123456789012345678901234567890 9\n", SIM_FORMAT_SWF,
         "trace:2: field 1 (job number): \"?\?a01234567890123456...\" is no number"},
        {"1 9 5 -2 4 30 2048 8 120 4096 1 3 2 9 1 1 -1 -1\n", SIM_FORMAT_SWF,
         "trace:1: field 4 (run time): \"-2\""},
        {"1 9 5 60h 4 30 2048 8 120 4096 1 3 2 9 1 1 -1 -1\n", SIM_FORMAT_SWF,
         "trace:1: field 4 (run time): \"60h\""},
        {"1 -1 5 60 4 30 2048 8 120 4096 1 3 2 9 1 1 -1 -1\n", SIM_FORMAT_SWF,
         "trace:1: field 2 (submit time) is unknown"},
        {"1 9 5 99999999999 4 30 2048 8 120 4096 1 3 2 9 1 1 -1 -1\n", SIM_FORMAT_SWF,
         "trace:1: field 4 (run time): more than 10000000000 seconds"},
        {"1 9 5 99999999999999999999 4 30 2048 8 120 4096 1 3 2 9 1 1 -1 -1\n", SIM_FORMAT_SWF,
         "trace:1: field 4 (run time): \"99999999999999999999\" is too large"},
        {"1 9 5 6 4 30 2048 8 120 4096 1 99999999999999999999.5 2 9 1 1 -1 -1\n", SIM_FORMAT_SWF,
         "trace:1: field 12 (user): \"99999999999999999999...\" is too large"},
        {"1 9 5 6 99999999 30 2048 8 120 4096 1 3 2 9 1 1 -1 -1\n", SIM_FORMAT_SWF,
         "trace:1: more than 10000000 processors"},
        {"1 9 5 6 4.5 30 2048 8 120 4096 1 3 2 9 1 1 -1 -1\n", SIM_FORMAT_SWF,
         "trace:1: field 5 (processors): \"4.5\" is no whole number"},
        {SWF_LINE "8 99 5 60 4 30 2048 8 120 4096 1 3 2 9 1 1 -1 -1\n", SIM_FORMAT_AUTO,
         "trace:2: submitted before the job above it"},
        {"hello\n", SIM_FORMAT_AUTO, "trace:1: neither SWF, nor a Torque"},
        {"h\xc3\xa9\tllo\n", SIM_FORMAT_AUTO, "say which with --format"},
        {"\x93\xa7\xfe x\n", SIM_FORMAT_AUTO, "trace:1: binary data: neither a trace nor one comp"},
        {"x \x01\x02\n", SIM_FORMAT_AUTO, "trace:1: binary data"},
        {"", SIM_FORMAT_AUTO, "the file is empty"},
        {E_LINE("1", "1000", "1:ppn=2", "") "", SIM_FORMAT_AUTO,
         "trace:1: an E line without resources_used.walltime"},
        {"10/01/2017 00:01:38;E;1.m1;resources_used.walltime=1 end=1200 Resource_List.nodes=1\n",
         SIM_FORMAT_AUTO, "trace:1: an E line without etime"},
        {"10/01/2017 00:01:38;E;1.m1;etime=1000 resources_used.walltime=1 end=1200\n",
         SIM_FORMAT_AUTO, "trace:1: an E line without Resource_List.nodes"},
        {"10/01/2017 00:01:38;E;1.m1;etime=1000 resources_used.walltime=1 Resource_List.nodes=1\n",
         SIM_FORMAT_AUTO, "trace:1: an E line without end"},
        {E_LINE("1", "1000", "1",
                "resources_used.walltime=00:00:10") "10/01/2017 00:01:38;E;1.m1;etime=1000 "
                                                    "end=1200 Resource_List.nodes=1 "
                                                    "resources_used.walltime=00:00:1",
         SIM_FORMAT_AUTO, "trace:2: an E line that does not end: the log was cut off in it"},
        {"10/01/2017 00:01:38;E;1.m1;exec_host=n1/0*4+n2/0*4 etime=1000\n", SIM_FORMAT_AUTO,
         "trace:1: exec_host=n1/0*4+n2/0*4: an accounting log of PBS Pro or OpenPBS"},
        {"10/01/2017 00:01:38;E;1.m1;Resource_List.select=2:ncpus=4\n", SIM_FORMAT_AUTO,
         "trace:1: Resource_List.select=2:ncpus=4: an accounting log of PBS Pro"},
        {"10/01/2017 00:01:38;Q;1.m1;queue=batch\n", SIM_FORMAT_AUTO, "trace: no E line"},
        {E_LINE("1", "1000", "1:ppn=x", "resources_used.walltime=00:00:10"), SIM_FORMAT_AUTO,
         "trace:1: Resource_List.nodes=1:ppn=x: not understood"},
        {E_LINE("1", "1000", "1", "resources_used.walltime=00:00:10")
             E_LINE("2", "1000", "1", "resources_used.mem=5xb"),
         SIM_FORMAT_AUTO, "trace:2: resources_used.mem=5xb: not understood"},
        {E_LINE("1", "1000", "1", "resources_used.walltime=00:99:10"), SIM_FORMAT_AUTO,
         "trace:1: resources_used.walltime=00:99:10"},
        {"10/01/2017 00:01:38;E;x;user=a\n", SIM_FORMAT_AUTO, "trace:1: no job number"},
        {E_LINE("1", "1000", "1", "resources_used.walltime=1") "rubbish\n", SIM_FORMAT_AUTO,
         "trace:2: not MM/DD/YYYY"},
        {GWA_HEAD "1;\t2;\t3\n", SIM_FORMAT_AUTO, "trace:2: field 3 is no number, or"},
        {GWA_HEAD "1;\t2;\t3;\t-4;\t5;\t6;\t7;\t8;\t9;\t10;\t11\n", SIM_FORMAT_AUTO,
         "trace:2: field 4"},
        {"5\n101\n", SIM_FORMAT_VMSERIES, "trace:2: no number from 0 to 100"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(SimTrace) trace = open_text(*state, cases[i].text, cases[i].format, &error);
        g_autoptr(GArray) jobs = trace != NULL ? read_jobs(trace, &error) : NULL;
        assert_null(jobs);
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].expected);
    }
}

static void a_nul_byte_is_refused(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(*state, "nul", NULL);
    const char *paths[] = {path, NULL};
    assert_true(g_file_set_contents(path, "; x\n1 \0 3\n", 10, NULL));
    g_autoptr(SimTrace) trace = sim_trace_open(paths, SIM_FORMAT_SWF, &error);
    assert_no_error(error);
    assert_null(read_jobs(trace, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "nul:2: a NUL byte");
}

static void compressed_traces_are_told_by_their_content(void **state)
{
    const char *files[] = {NULL, SWF_LINE, NULL};
    g_autofree char *plain = g_build_filename(*state, "plain", NULL);
    assert_true(g_file_set_contents(plain, SWF_LINE, -1, NULL));
    for (Filter filter = PLAIN; filter <= ZSTD; filter++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *path = write_archive(*state, filter, files);
        const char *paths[] = {path, plain, NULL}; /* two parts of one log */
        g_autoptr(SimTrace) trace = sim_trace_open(paths, SIM_FORMAT_AUTO, &error);
        assert_no_error(error);
        g_autoptr(GArray) jobs = read_jobs(trace, &error);
        assert_no_error(error);
        assert_int_equal(jobs->len, 2);
    }
}

static void a_damaged_file_is_data_loss(void **state)
{
    const char *files[] = {NULL, SWF_LINE SWF_LINE SWF_LINE, NULL};
    for (Filter filter = GZIP; filter <= ZSTD; filter++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *path = write_archive(*state, filter, files);
        g_autofree char *data = NULL;
        gsize length;
        const char *paths[] = {path, NULL};
        assert_true(g_file_get_contents(path, &data, &length, NULL));
        assert_true(g_file_set_contents(path, data, (gssize)length - 12, NULL));
        g_autoptr(SimTrace) trace = sim_trace_open(paths, SIM_FORMAT_SWF, &error);
        if (trace != NULL)
            assert_null(read_jobs(trace, &error));
        assert_non_null(error);
        assert_non_null(strstr(error->message, "cannot read"));
        g_autofree char *lower = g_ascii_strdown(error->message, -1);
        assert_non_null(strstr(lower, "truncated"));
    }
}

static void a_missing_file_is_not_found(void **state)
{
    const char *paths[] = {"/nonexistent/trace.swf", NULL};
    g_autoptr(GError) error = NULL;
    assert_null(sim_trace_open(paths, SIM_FORMAT_AUTO, &error));
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND,
                       "cannot read /nonexistent/trace.swf: No such file or directory");
}

static void a_directory_is_no_trace(void **state)
{
    const char *paths[] = {*state, NULL};
    g_autoptr(GError) error = NULL;
    assert_null(sim_trace_open(paths, SIM_FORMAT_AUTO, &error));
    assert_non_null(error);
    assert_non_null(strstr(error->message, "Is a directory"));
}

static void the_same_file_twice_is_refused(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(*state, "a", NULL);
    g_autofree char *other = g_build_filename(*state, "b", NULL);
    const char *paths[] = {path, other, NULL};
    assert_true(g_file_set_contents(path, SWF_LINE, -1, NULL));
    assert_int_equal(symlink(path, other), 0);
    assert_null(sim_trace_open(paths, SIM_FORMAT_AUTO, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "are one file");
}

/* What can be read once only is read as often as it takes. */
static void a_pipe_is_a_trace(void **state)
{
    static const char *const texts[] = {SWF_LINE,
                                        E_LINE("1", "1000", "1", "resources_used.walltime=1")};
    for (guint i = 0; i < 2 * G_N_ELEMENTS(texts); i++) {
        int ends[2], was = dup(STDIN_FILENO);
        const char *text = texts[i / 2];
        g_autoptr(GError) error = NULL;
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
        assert_int_equal(close(ends[1]), 0);
        assert_true(dup2(ends[0], STDIN_FILENO) >= 0);
        assert_int_equal(close(ends[0]), 0);
        const char *paths[] = {i % 2 == 0 ? "-" : "/dev/stdin", NULL};
        g_autoptr(SimTrace) trace = sim_trace_open(paths, SIM_FORMAT_AUTO, &error);
        assert_no_error(error);
        for (guint pass = 0; pass < 2; pass++) {
            g_autoptr(GArray) jobs = read_jobs(trace, &error);
            assert_no_error(error);
            assert_int_equal(jobs->len, 1);
            assert_true(sim_trace_rewind(trace, &error));
        }
        assert_true(dup2(was, STDIN_FILENO) >= 0);
        assert_int_equal(close(was), 0);
    }
}

static void a_byte_order_mark_is_skipped(void **state)
{
    static const char *const texts[] = {SWF_LINE,
                                        E_LINE("1", "1000", "1", "resources_used.walltime=1")};
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = g_strconcat("\xef\xbb\xbf", texts[i], NULL);
        g_autoptr(SimTrace) trace = open_text(*state, text, SIM_FORMAT_AUTO, &error);
        assert_no_error(error);
        g_autoptr(GArray) jobs = read_jobs(trace, &error);
        assert_no_error(error);
        assert_int_equal(jobs->len, 1);
    }
}

static void torque_jobs_come_in_order_of_arrival(void **state)
{
    static const char text[] = "10/01/2017 00:00:16;Q;1.m1;queue=batch\n" E_LINE(
        "12[3]", "1150", "2:ppn=4+1:ppn=2:big",
        "resources_used.walltime=00:02:05 resources_used.cput=77 resources_used.mem=2048kb")
        E_LINE("11", "1100", "1",
               "resources_used.walltime=00:00:00 resources_used.cput=0 "
               "resources_used.mem=0kb");
    g_autoptr(GError) error = NULL;
    g_autoptr(SimTrace) trace = open_text(*state, text, SIM_FORMAT_AUTO, &error);
    assert_no_error(error);
    g_autoptr(GArray) jobs = read_jobs(trace, &error);
    assert_no_error(error);
    assert_int_equal(sim_trace_format(trace), SIM_FORMAT_TORQUE);
    assert_int_equal(jobs->len, 2);
    assert_int_equal(JOB(jobs, 0).number, 11);
    /* Both were eligible before the earliest end in the log (1200). */
    assert_int_equal(JOB(jobs, 0).submit_sec, 1200);
    assert_int_equal(JOB(jobs, 0).run_sec, 1);
    assert_int_equal(JOB(jobs, 0).memory_used_kib, 0);
    const SimTraceJob *wide = &JOB(jobs, 1);
    assert_int_equal(wide->number, 12);
    assert_int_equal(wide->procs, 10);
    assert_int_equal(wide->nodes, 3);
    assert_int_equal(wide->run_sec, 125);
    assert_int_equal(wide->limit_sec, 8 * 3600);
    assert_int_equal(wide->cpu_sec, 77);
    assert_int_equal(wide->memory_kib, 8 * 1024 * 1024);
    assert_int_equal(wide->memory_used_kib, 2048);
    assert_int_equal(wide->user, JOB(jobs, 0).user);
    assert_int_equal(sim_trace_machine(trace).nodes, 2);
    assert_int_equal(sim_trace_machine(trace).vcpus_per_node, 32);
}

static void torque_whole_jobs_come_when_they_were_eligible(void **state)
{
    static const char text[] =
        E_LINE("1", "1000", "1", "resources_used.walltime=00:03:20 resources_used.cput=0")
            E_LINE("2", "1150", "1", "resources_used.walltime=00:00:50 resources_used.cput=0");
    g_autoptr(GError) error = NULL;
    g_autoptr(SimTrace) trace = open_text(*state, text, SIM_FORMAT_TORQUE_WHOLE, &error);
    assert_no_error(error);
    g_autoptr(GArray) jobs = read_jobs(trace, &error);
    assert_no_error(error);
    assert_int_equal(sim_trace_format(trace), SIM_FORMAT_TORQUE);
    assert_int_equal(JOB(jobs, 0).submit_sec, 1000);
    assert_int_equal(JOB(jobs, 1).submit_sec, 1150);
}

static void torque_memory_is_the_largest_asked_for(void **state)
{
    static const struct {
        const char *asked;
        guint64 mib; /* of the job: 2 nodes with 4 processes each */
    } cases[] = {
        {"", 0},
        {" Resource_List.mem=3gb", 3072},
        {" Resource_List.vmem=3gb", 3072},
        {" Resource_List.pmem=2gb", 8 * 2048},
        {" Resource_List.pvmem=2gb", 8 * 2048},
        {" Resource_List.mem=256gb Resource_List.vmem=32mb", 256 * 1024},
        {" Resource_List.vmem=32mb Resource_List.mem=256gb", 256 * 1024},
        {" Resource_List.mem=20gb Resource_List.pmem=2gb", 20 * 1024},
        {" Resource_List.pvmem=1gb Resource_List.pmem=3gb Resource_List.vmem=20gb", 24 * 1024},
        {" Resource_List.pmem=1048576tb", G_GUINT64_CONSTANT(1) << 40},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = g_strdup_printf("10/01/2017 00:01:38;E;1.m1;etime=1000 end=1200 "
                                                "Resource_List.nodes=2:ppn=4 "
                                                "resources_used.walltime=00:01:00%s\n",
                                                cases[i].asked);
        g_autoptr(SimTrace) trace = open_text(*state, text, SIM_FORMAT_AUTO, &error);
        assert_no_error(error);
        g_autoptr(GArray) jobs = read_jobs(trace, &error);
        assert_no_error(error);
        assert_int_equal(JOB(jobs, 0).memory_kib, cases[i].mib * 1024);
    }
}

/* Slots: 0 twice (the larger counts), 1 is missing (as 0), 2, then switched off. */
static const char gwa_text[] =
    GWA_HEAD "1000;\t2;\t4000.0;\t1000;\t25;\t4194304;\t1048576;\t0;\t0;\t0;\t0\n"
             "1100;\t2;\t4000.0;\t2000;\t50;\t4194304;\t524288;\t0;\t0;\t0;\t0\n"
             "1600;\t2;\t4000.0;\t4400;\t110;\t4194304;\t4194304;\t0;\t0;\t0;\t0\n"
             "1900;\t0;\t0;\t0;\t0;\t0;\t0;\t0;\t0;\t0;\t0\n";

static void vm_series_go_to_a_grid(void **state)
{
    const char *files[] = {
        "set/1.csv",    gwa_text, "set/off.csv", GWA_HEAD, "planetlab/20110303/some host",
        "0\n50\n100\n", NULL};
    g_autoptr(GError) error = NULL;
    g_autofree char *path = write_archive(*state, XZ, files);
    const char *paths[] = {path, NULL};
    g_autoptr(SimTrace) trace = sim_trace_open(paths, SIM_FORMAT_AUTO, &error);
    assert_no_error(error);
    assert_int_equal(sim_trace_format(trace), SIM_FORMAT_VMSERIES);
    const SimSeriesSet *set = sim_trace_series(trace);
    assert_int_equal(set->series->len, 2);
    const SimSeries *series = sim_series_get(set, 0);
    assert_int_equal(series->n_samples, 3);
    assert_int_equal(series->vcpus, 2);
    assert_int_equal(series->memory_mib, 4096);
    assert_int_equal(series->cpu[0], 5000);
    assert_int_equal(series->cpu[1], 5000);
    assert_int_equal(series->cpu[2], 10000);
    assert_int_equal(series->memory[0], 2500);
    assert_int_equal(series->memory[2], 10000);
    series = sim_series_get(set, 1);
    assert_int_equal(series->n_samples, 3);
    assert_int_equal(series->first_sec, 1299110400); /* 2011-03-03 00:00 UTC */
    assert_int_equal(series->cpu[1], 5000);
    assert_null(series->memory);
    g_autoptr(GArray) jobs = read_jobs(trace, &error);
    assert_int_equal(jobs->len, 2);
    assert_int_equal(JOB(jobs, 0).run_sec, 900);
    assert_int_equal(JOB(jobs, 0).procs, 2);
    assert_int_equal(JOB(jobs, 1).series, 2);
}

static void parts_of_different_formats_are_refused(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *swf = g_build_filename(*state, "a", NULL);
    g_autofree char *series = g_build_filename(*state, "b", NULL);
    const char *paths[] = {swf, series, NULL};
    assert_true(g_file_set_contents(swf, SWF_LINE, -1, NULL));
    assert_true(g_file_set_contents(series, gwa_text, -1, NULL));
    assert_null(sim_trace_open(paths, SIM_FORMAT_AUTO, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "parts of one log");
}

static void machines_file_replaces_the_header(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *swf = g_build_filename(*state, "a.swf", NULL);
    g_autofree char *machines = g_build_filename(*state, "a.machines", NULL);
    const char *paths[] = {swf, NULL};
    assert_true(g_file_set_contents(swf, "; MaxProcs: 240\n" SWF_LINE, -1, NULL));
    assert_true(g_file_set_contents(machines, "0\tseth\t120\t2\t1\t1048576\n", -1, NULL));
    g_autoptr(SimTrace) trace = sim_trace_open(paths, SIM_FORMAT_AUTO, &error);
    assert_no_error(error);
    assert_int_equal(sim_trace_machine(trace).nodes, 120);
    assert_int_equal(sim_trace_machine(trace).vcpus_per_node, 2);
    assert_int_equal(sim_trace_machine(trace).memory_mib_per_node, 1024);
    assert_true(g_file_set_contents(machines, "0 seth 120\n", -1, NULL));
    assert_null(sim_trace_open(paths, SIM_FORMAT_AUTO, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "a.machines:1: not ID, NAME");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(swf_line_gives_every_field),
        TEST(swf_unknown_is_unknown_and_what_never_ran_is_counted),
        TEST(bad_lines_are_refused_with_their_place),
        TEST(a_nul_byte_is_refused),
        TEST(compressed_traces_are_told_by_their_content),
        TEST(a_damaged_file_is_data_loss),
        TEST(a_missing_file_is_not_found),
        TEST(a_directory_is_no_trace),
        TEST(the_same_file_twice_is_refused),
        TEST(a_pipe_is_a_trace),
        TEST(a_byte_order_mark_is_skipped),
        TEST(torque_jobs_come_in_order_of_arrival),
        TEST(torque_whole_jobs_come_when_they_were_eligible),
        TEST(torque_memory_is_the_largest_asked_for),
        TEST(vm_series_go_to_a_grid),
        TEST(parts_of_different_formats_are_refused),
        TEST(machines_file_replaces_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
