/* SPDX-License-Identifier: Apache-2.0
 *
 * The pjrt device on a real plug-in, every entry of which is made to fail at
 * each of its calls: the error is told in the plug-in's words, nothing leaks,
 * and the library goes on to the values of a run without a failure.
 *
 * The plug-in is TRN_PJRT_PLUGIN, behind the shim of tests/plugins/, which
 * keeps what it has compiled from one such run to the next.
 */
#include "tests/pjrt_shim.h"

static void needs_plugin(void)
{
    if (getenv("TRN_PJRT_PLUGIN") == NULL || !trn__hlo_available())
        skip();
}

/*
 * Two kinds of steps, each with a state that it overwrites, which is donated,
 * and a result of its own.  Even ones look at indices, so that the next step
 * waits for their check; odd ones check nothing, so that two are in flight.
 */
enum { N_STEPS = 8, ROWS = 5, COLUMNS = 3, PICKS = 4 };

typedef struct world {
    trn_context *c;
    trn_tensor *table; /* [ROWS,COLUMNS] */
    trn_tensor *line;  /* [COLUMNS] */
    trn_tensor *picks; /* i32[PICKS], in [0, ROWS) */
    trn_tensor *aim;   /* [COLUMNS] */
    int64_t start;     /* the context's steps before the first of ours */
} world;

static const float table_at_first[ROWS * COLUMNS] = {
    1, -2, 3, 4, 0.5f, -6, 7, 8, -9, 1.5f, 2, -3, 4, 5, 6,
};
static const float line_at_first[COLUMNS] = {0.25f, -4, 2};

static bool world_build(world *w)
{
    static const int32_t picks[PICKS] = {4, 0, 2, 0};
    static const float aim[COLUMNS] = {1, 2, 3};
    trn_context *c = w->c;
    w->table = trn_tensor_from(c, TRN_F32, 2, (int64_t[]){ROWS, COLUMNS},
                               table_at_first);
    w->line =
        trn_tensor_from(c, TRN_F32, 1, (int64_t[]){COLUMNS}, line_at_first);
    w->picks = trn_tensor_from(c, TRN_I32, 1, (int64_t[]){PICKS}, picks);
    w->aim = trn_tensor_from(c, TRN_F32, 1, (int64_t[]){COLUMNS}, aim);
    w->start = trn_step_index(c);
    if (trn_errcode(c) != TRN_OK)
        return false;
    trn_set_requires_grad(w->table, true);
    trn_set_requires_grad(w->line, true);
    return true;
}

static int64_t steps_of(const world *w)
{
    return trn_step_index(w->c) - w->start;
}

/* x <- x - rate * d loss / d x, with another rate in every step */
static void descend(trn_tensor *loss, trn_tensor *x, int64_t k)
{
    trn_tensor *g = NULL;
    trn_context *c = trn_tensor_context(x);
    trn_grad(1, &loss, 1, &x, NULL, NULL, &g);
    trn_no_grad_begin(c);
    trn_assign(x, trn_sub(x, trn_mul_scalar(g, 0.5 / (double)(k + 2))));
    trn_no_grad_end(c);
}

static void step(world *w, int64_t k)
{
    trn_step_begin(w->c);
    trn_tensor *x = k % 4 < 2 ? w->table : w->line;
    trn_tensor *d = k % 4 < 2 ? trn_embedding(w->table, w->picks, -1)
                              : trn_sub(w->line, w->aim);
    trn_tensor *loss = trn_mean(trn_mul(d, d), TRN_ALL_AXES, false);
    descend(loss, x, k);
    trn_tensor *kept = trn_keep(loss);
    trn_step_end(w->c);
    trn_tensor_release(kept);
}

/* What a run met. */
typedef struct story {
    trn_status status; /* of the first error */
    char message[400];
    bool in_setup, lost;
    bool no_values; /* it did not open */
    float table[ROWS * COLUMNS], line[COLUMNS];
} story;

static void note(trn_context *c, story *s)
{
    if (s->status == TRN_OK) {
        s->status = trn_errcode(c);
        snprintf(s->message, sizeof s->message, "%s", trn_errmsg(c));
    }
    trn_clear(c);
}

/* The states, if they can be read. */
static trn_status read_states(world *w, story *s)
{
    trn_tensor_read(w->table, s->table, sizeof s->table);
    trn_tensor_read(w->line, s->line, sizeof s->line);
    return trn_errcode(w->c);
}

/* After a failure: lost states are written anew, and all begins again. */
static void recover(world *w, story *s)
{
    note(w->c, s);
    if (read_states(w, s) != TRN_ERR_LOST)
        return;
    s->lost = true;
    trn_clear(w->c);
    trn_tensor_write(w->table, table_at_first, sizeof table_at_first);
    trn_tensor_write(w->line, line_at_first, sizeof line_at_first);
    w->start = trn_step_index(w->c);
}

static void train(world *w, story *s)
{
    for (int tries = 0; tries < 10; tries++) {
        while (trn_errcode(w->c) == TRN_OK && steps_of(w) < N_STEPS)
            step(w, steps_of(w));
        trn_sync(w->c);
        if (trn_errcode(w->c) == TRN_OK && read_states(w, s) == TRN_OK)
            return;
        recover(w, s);
    }
    fail_msg("does not go on: %s", s->message);
}

static story run_with(const char *entry, uint64_t n)
{
    story s = {.status = TRN_OK};
    world w;
    trn_options o = captured_options(LOOP, shim_device());
    assert_true(shim.fail_at(entry, n, 0));
    if (trn_open(&w.c, &o) != TRN_OK) {
        s.in_setup = s.no_values = true;
        note(w.c, &s);
        captured_close(w.c);
        return s;
    }
    if (!world_build(&w)) { /* a second try must work */
        s.in_setup = true;
        note(w.c, &s);
        CHECK(world_build(&w), "%s\n", trn_errmsg(w.c));
    }
    train(&w, &s);
    captured_close(w.c);
    return s;
}

/* Entries whose failure nobody could act on: it is not told. */
static bool is_silent(const char *entry)
{
    return strstr(entry, "_Destroy") != NULL ||
           strcmp(entry, "PJRT_Executable_GetCompiledMemoryStats") == 0;
}

static void check_story(const char *entry, uint64_t n, const story *s,
                        const story *good)
{
    char when[100];
    snprintf(when, sizeof when, "%s@%d", entry, (int)n);
    if (is_silent(entry)) {
        CHECK(s->status == TRN_OK, "%s: %s\n", when, s->message);
    } else {
        CHECK(s->status == TRN_ERR_DEVICE, "%s: %s: %s\n", when,
              trn_status_name(s->status), s->message);
        CHECK(strncmp(s->message, "pjrt: ", 6) == 0 &&
                  strstr(s->message, ": shim: PJRT_") != NULL &&
                  strstr(s->message, "as asked for") != NULL,
              "%s: %s\n", when, s->message);
    }
    shim_is_empty(when);
    CHECK(s->no_values ||
              (memcmp(s->table, good->table, sizeof s->table) == 0 &&
               memcmp(s->line, good->line, sizeof s->line) == 0),
          "%s: other values\n", when);
}

/* Those that only a process' first context, or a failure, makes. */
static bool is_rare(const char *entry)
{
    return strcmp(entry, "PJRT_Plugin_Initialize") == 0 ||
           strcmp(entry, "PJRT_Buffer_IsDeleted") == 0 ||
           strcmp(entry, "PJRT_Error_GetCode") == 0;
}

static void each_entry_may_fail_at_each_call(void **state)
{
    (void)state;
    needs_plugin();
    story good = run_with(NULL, 0);
    CHECK(good.status == TRN_OK, "%s\n", good.message);
    shim.keep(true);
    uint64_t total = 0;
    const char *entry;
    for (int i = 0; (entry = shim.entry(i)) != NULL; i++) {
        uint64_t n = 0;
        int n_setup = 0, n_lost = 0;
        for (;; n++) {
            story s = run_with(entry, n + 1);
            if (shim.failed() == 0)
                break;
            check_story(entry, n + 1, &s, &good);
            n_setup += s.in_setup;
            n_lost += s.lost;
        }
        total += n;
        print_message("%-40s %4d points, %d before training, %d with lost "
                      "values\n",
                      entry, (int)n, n_setup, n_lost);
        assert_true((n > 0) == !is_rare(entry));
        bool loses = strcmp(entry, "lost") == 0 ||
                     strcmp(entry, "PJRT_Event_Await") == 0 ||
                     strcmp(entry, "PJRT_Buffer_ToHostBuffer") == 0;
        assert_true((n_lost > 0) == loses);
    }
    shim.keep(false);
    print_message("%d points of failure\n", (int)total);
}

/* Fails allocation n of a run that opens a context, trains and closes; false:
 * the run makes fewer. */
static bool fail_allocation(int64_t n, const story *good)
{
    story s = {.status = TRN_OK};
    world w;
    trn_options o = captured_options(LOOP, shim_device());
    shim.fail_at(NULL, 0, 0);
    captured_fail_at(n, false);
    bool opened = trn_open(&w.c, &o) == TRN_OK;
    if (opened && !world_build(&w)) {
        note(w.c, &s);
        CHECK(world_build(&w), "%s\n", trn_errmsg(w.c));
    }
    if (opened)
        train(&w, &s);
    else
        note(w.c, &s);
    bool reached = captured_failed();
    captured_close(w.c);
    CHECK(s.status == TRN_OK || (reached && s.status == TRN_ERR_NOMEM),
          "allocation %d: %s\n", (int)n, s.message);
    CHECK(!opened || (memcmp(s.table, good->table, sizeof s.table) == 0 &&
                      memcmp(s.line, good->line, sizeof s.line) == 0),
          "allocation %d: other values\n", (int)n);
    shim_is_empty("after an allocation that failed");
    return reached;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    needs_plugin();
    story good = run_with(NULL, 0);
    shim.keep(true);
    int64_t n = 0;
    while (fail_allocation(n + 1, &good))
        n++;
    shim.keep(false);
    print_message("%d allocations\n", (int)n);
    assert_true(n > 100);
}

static world open_world(const char *device)
{
    world w = {.c = captured_open(LOOP, device)};
    CHECK(world_build(&w), "%s\n", trn_errmsg(w.c));
    return w;
}

static void what_was_not_donated_is_kept(void **state)
{
    (void)state;
    needs_plugin();
    story before = {.status = TRN_OK}, after = before;
    shim.fail_at(NULL, 0, 0);
    world w = open_world(shim_device());
    step(&w, 0);
    step(&w, 1);
    assert_int_equal(read_states(&w, &before), TRN_OK);
    shim.fail_at("PJRT_LoadedExecutable_Execute", 1, PJRT_NO_ROOM);
    step(&w, 2);
    trn_sync(w.c);
    harness_error(w.c, TRN_ERR_NOMEM, "pjrt: execute: shim: ");
    assert_int_equal(read_states(&w, &after), TRN_OK);
    assert_memory_equal(before.line, after.line, sizeof before.line);
    shim.fail_at("lost", 1, 0);
    step(&w, 2);
    trn_sync(w.c);
    harness_error(w.c, TRN_ERR_DEVICE, "lost as asked for");
    assert_int_equal(shim.calls("PJRT_Buffer_IsDeleted"), 1);
    assert_int_equal(read_states(&w, &after), TRN_ERR_LOST);
    harness_error(w.c, TRN_ERR_LOST, "checkpoint");
    assert_memory_equal(before.table, after.table, sizeof before.table);
    assert_int_equal(trn_tensor_write(w.line, before.line, sizeof before.line),
                     TRN_OK);
    /* Who cannot tell whether an input is gone may not say that it is there;
     * and an error without a code is an error. */
    shim.fail_at("PJRT_LoadedExecutable_Execute", 1, PJRT_NO_ROOM);
    shim.also("PJRT_Buffer_IsDeleted");
    step(&w, 2);
    trn_sync(w.c);
    harness_error(w.c, TRN_ERR_NOMEM, "pjrt: execute: shim: ");
    assert_int_equal(read_states(&w, &after), TRN_ERR_LOST);
    trn_clear(w.c);
    trn_tensor_write(w.line, before.line, sizeof before.line);
    shim.fail_at("PJRT_LoadedExecutable_Execute", 1, PJRT_NO_ROOM);
    shim.also("PJRT_Error_GetCode");
    step(&w, 2);
    trn_sync(w.c);
    harness_error(w.c, TRN_ERR_DEVICE, "pjrt: execute: shim: ");
    shim.fail_at(NULL, 0, 0);
    step(&w, 2);
    assert_int_equal(read_states(&w, &after), TRN_OK);
    captured_close(w.c);
    shim_is_empty("after lost values");
}

static void a_bad_index_stops_what_comes_behind_it(void **state)
{
    (void)state;
    needs_plugin();
    story before = {.status = TRN_OK}, after = before;
    shim.fail_at(NULL, 0, 0);
    world w = open_world(shim_device());
    for (int k = 0; k < 4; k++)
        step(&w, k);
    assert_int_equal(read_states(&w, &before), TRN_OK);
    const int32_t bad[PICKS] = {0, 1, ROWS, 2}, good[PICKS] = {4, 0, 2, 0};
    trn_tensor_write(w.picks, bad, sizeof bad);
    step(&w, 4); /* a bad value that only the device sees */
    shim.fail_at(NULL, 0, 0);
    step(&w, 6); /* does not run, though its scalar was on its way */
    assert_int_equal(shim.calls("PJRT_LoadedExecutable_Execute"), 0);
    assert_int_equal(shim.calls("PJRT_Client_BufferFromHostBuffer"), 1);
    trn_sync(w.c);
    harness_error(w.c, TRN_ERR_INDEX,
                  "embedding: index 5 at position 2; expected 0 to 4");
    assert_int_equal(steps_of(&w), 4);
    assert_int_equal(read_states(&w, &after), TRN_OK);
    assert_memory_equal(before.table, after.table, sizeof before.table);
    assert_memory_equal(before.line, after.line, sizeof before.line);
    trn_tensor_write(w.picks, good, sizeof good);
    for (int k = 4; k < N_STEPS; k++)
        step(&w, k);
    assert_int_equal(read_states(&w, &after), TRN_OK);
    /* A fault behind it is not what is told. */
    trn_tensor_write(w.picks, bad, sizeof bad);
    step(&w, 4);
    shim.fail_at("PJRT_Client_BufferFromHostBuffer", 1, PJRT_NO_ROOM);
    step(&w, 6);
    trn_sync(w.c);
    assert_int_equal(shim.failed(), 1);
    harness_error(w.c, TRN_ERR_INDEX, "embedding: index 5 at position 2");
    captured_close(w.c);
    shim_is_empty("after bad indices");
    story whole = run_with(NULL, 0);
    assert_memory_equal(whole.table, after.table, sizeof after.table);
    assert_memory_equal(whole.line, after.line, sizeof after.line);
}

static void a_step_uploads_scalars_and_downloads_nothing(void **state)
{
    (void)state;
    needs_plugin();
    enum { N = 10 };
    shim.fail_at(NULL, 0, 0);
    world w = open_world(shim_device());
    step(&w, 2);
    step(&w, 3);
    trn_sync(w.c);
    shim.fail_at(NULL, 0, 0); /* all counts at 0 */
    int64_t before = captured_allocations();
    for (int k = 0; k < N; k++)
        step(&w, 2);
    trn_sync(w.c);
    harness_ok(w.c);
    print_message("%d allocations in %d steps\n",
                  (int)(captured_allocations() - before), N);
    assert_int_equal(shim.calls("PJRT_LoadedExecutable_Execute"), N);
    assert_int_equal(shim.calls("PJRT_Client_BufferFromHostBuffer"), N);
    assert_int_equal(shim.calls("PJRT_Buffer_ToHostBuffer"), 0);
    assert_int_equal(shim.calls("PJRT_Client_Compile"), 0);
    captured_close(w.c);
}

static void no_room_is_told_wherever_it_is_found(void **state)
{
    (void)state;
    needs_plugin();
    static const char *const entries[] = {
        "PJRT_Client_Compile",           "PJRT_Client_BufferFromHostBuffer",
        "PJRT_LoadedExecutable_Execute", "PJRT_Event_Await",
        "PJRT_Buffer_ToHostBuffer",
    };
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        shim.fail_at(NULL, 0, 0);
        world w = open_world(shim_device());
        shim.fail_at(entries[i], 1, PJRT_NO_ROOM);
        shim.words("Out of memory allocating 7 bytes");
        step(&w, 0);
        trn_sync(w.c);
        harness_error(w.c, TRN_ERR_NOMEM, "Out of memory allocating 7 bytes");
        shim.fail_at("PJRT_Client_BufferFromHostBuffer", 1, PJRT_NO_ROOM);
        trn_tensor_write(w.line, line_at_first, sizeof line_at_first);
        harness_error(w.c, TRN_ERR_NOMEM, "pjrt: upload: shim: ");
        captured_close(w.c);
    }
    shim_is_empty("after no room");
}

static void every_device_of_a_client_trains(void **state)
{
    (void)state;
    needs_plugin();
    shim.fail_at(NULL, 0, 0);
    story first = run_with(NULL, 0), second = {.status = TRN_OK};
    char device[4700];
    snprintf(device, sizeof device, "%s:1", shim_device());
    world w = {.c = NULL};
    trn_options o = captured_options(LOOP, device);
    o.device_options = "pjrt_create_options=cpu_device_count=2";
    assert_int_equal(trn_open(&w.c, &o), TRN_OK);
    assert_non_null(strstr(trn_device_description(w.c), "device 1 of 2"));
    assert_true(world_build(&w));
    train(&w, &second);
    CHECK(second.status == TRN_OK, "%s\n", second.message);
    captured_close(w.c);
    assert_memory_equal(first.table, second.table, sizeof first.table);
    assert_memory_equal(first.line, second.line, sizeof first.line);
    snprintf(device, sizeof device, "%s:2", shim_device());
    assert_int_equal(trn_open(&w.c, &o), TRN_ERR_DEVICE);
    harness_error(w.c, TRN_ERR_DEVICE,
                  "it has 2 devices, 0 to 1; there is no device 2");
    captured_close(w.c);
    shim_is_empty("after two devices");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_not_donated_is_kept),
        cmocka_unit_test(a_bad_index_stops_what_comes_behind_it),
        cmocka_unit_test(a_step_uploads_scalars_and_downloads_nothing),
        cmocka_unit_test(no_room_is_told_wherever_it_is_found),
        cmocka_unit_test(every_device_of_a_client_trains),
        cmocka_unit_test(each_entry_may_fail_at_each_call),
        cmocka_unit_test(each_allocation_may_fail),
    };
    const char *plugin = getenv("TRN_PJRT_PLUGIN");
    if (plugin != NULL)
        setenv("TRN_PJRT_SHIM_REAL", plugin, 1);
    return cmocka_run_group_tests(tests, shim_load, NULL);
}
