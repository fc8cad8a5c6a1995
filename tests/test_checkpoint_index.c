/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints whose index says what is not so, with all checksums as they
 * should be: each is refused with a message about it, and nothing changes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint_help.h"
#include "hostile.h"

#ifdef TRN_HAVE_HDF5

/* ---- one word of the index is another ---- */

typedef enum field { HEAD, SIZE, INDEX, COUNT, AT, BYTES, TYPE, PATH } field;

/* What becomes of a dataset's line, or of the first lines, and the answer. */
typedef struct attack {
    field field;
    const char *path;  /* of the dataset, below /tensors */
    const char *value; /* "" of a number: what it was, plus one */
    trn_status status;
    const char *part;
} attack;

#define BAD TRN_ERR_FORMAT
#define MAX63 "9223372036854775807"

static const attack attacks[] = {
    {HEAD, NULL, "libtrn checkpoint 0", BAD, "found format 0; expected 1"},
    {HEAD, NULL, "libtrn checkpoint 2", BAD, "found format 2; expected 1"},
    {HEAD, NULL, "libtrn checkpoint 18446744073709551617", BAD, "damaged"},
    {HEAD, NULL, "libtrn checkpoint 01", BAD, "damaged"},
    {HEAD, NULL, "libtrn checkpoint -1", BAD, "damaged"},
    {HEAD, NULL, "libtrn checkpoint 1 ", BAD, "damaged"},
    {HEAD, NULL, "libtrn  checkpoint 1", BAD, "looks like text"},
    {SIZE, NULL, "", BAD, "(truncated)"},
    {SIZE, NULL, "0", BAD, "the file has"},
    {SIZE, NULL, MAX63, BAD, "(truncated)"},
    {SIZE, NULL, "9223372036854775808", BAD, "damaged"},
    {SIZE, NULL, "18446744073709551617", BAD, "damaged"},
    {SIZE, NULL, "0x200", BAD, "damaged"},
    {INDEX, NULL, "", BAD, "bytes of index; expected a power of two"},
    {INDEX, NULL, "0", BAD, "found 0 bytes of index"},
    {INDEX, NULL, "256", BAD, "found 256 bytes of index"},
    {INDEX, NULL, "512", BAD, "its last line is damaged"},
    {INDEX, NULL, "67108864", BAD, "found 67108864 bytes of index"},
    {INDEX, NULL, "4611686018427387904", BAD, "bytes of index"},
    {COUNT, NULL, "", BAD, "datasets"},
    {COUNT, NULL, "0", BAD, "datasets"},
    {COUNT, NULL, MAX63, BAD, "datasets"},

    {AT, "a", "0", BAD, "/tensors/a lies at byte 0"},
    {AT, "a", "512", BAD, "/tensors/a lies at byte 512"},
    {AT, "a", MAX63, BAD, "/tensors/a lies at byte " MAX63},
    {AT, "a", "9223372036854775808", BAD, "is damaged"},
    {AT, "a", "18446744073709551616", BAD, "is damaged"},
    {AT, "a", "-1", BAD, "is damaged"},
    {AT, "a", "+4096", BAD, "is damaged"},
    {AT, "none", "8192", BAD, "/tensors/none lies at byte 8192 with 0"},
    {BYTES, "a", "0", BAD, "/tensors/a: found f32[2,3] in 0 bytes"},
    {BYTES, "a", "", BAD, "/tensors/a: found f32[2,3] in 25 bytes"},
    {BYTES, "a", MAX63, BAD, "in " MAX63 " bytes"},
    {BYTES, "a", "18446744073709551616", BAD, "is damaged"},
    {BYTES, "a", "024", BAD, "is damaged"},
    {BYTES, "none", "24", BAD, "/tensors/none: found i64[0,3] in 24 bytes"},

    {TYPE, "a", "f32[3,2]", TRN_ERR_SHAPE, "f32[3,2], expected f32[2,3]"},
    {TYPE, "a", "f32[6]", TRN_ERR_SHAPE, "found f32[6], expected f32[2,3]"},
    {TYPE, "a", "f32[2,3,1]", TRN_ERR_SHAPE, "found f32[2,3,1], expected"},
    {TYPE, "a", "f32[1,1,1,1,1,1,2,3]", TRN_ERR_SHAPE, "/tensors/a: found"},
    {TYPE, "a", "i32[2,3]", TRN_ERR_SHAPE, "i32[2,3], expected f32[2,3]"},
    {TYPE, "a", "u8[24]", TRN_ERR_SHAPE, "u8[24], expected f32[2,3]"},
    {TYPE, "a", "text", TRN_ERR_SHAPE, "text, expected f32[2,3]"},
    {TYPE, "a", "f32[2,4]", BAD, "/tensors/a: found f32[2,4] in 24 bytes"},
    {TYPE, "a", "f64[2,3]", BAD, "/tensors/a: found f64[2,3] in 24 bytes"},
    {TYPE, "a", "f32[]", BAD, "found f32[] in 24 bytes"},
    {TYPE, "a", "f32[0,3]", BAD, "found f32[0,3] in 24 bytes"},
    {TYPE, "a", "f32[-2,-3]", BAD, "found f32[-2,-3] in"},
    {TYPE, "a", "f32[02,3]", BAD, "found f32[02,3] in"},
    {TYPE, "a", "f32[2,3", BAD, "found f32[2,3 in"},
    {TYPE, "a", "f32[2,,3]", BAD, "found f32[2,,3] in"},
    {TYPE, "a", "f32[,2,3]", BAD, "found f32[,2,3] in"},
    {TYPE, "a", "f32[2,3,]", BAD, "found f32[2,3,] in"},
    {TYPE, "a", "f32[2,3]]", BAD, "found f32[2,3]] in"},
    {TYPE, "a", "f32", BAD, "found f32 in 24 bytes"},
    {TYPE, "a", "F32[2,3]", BAD, "found F32[2,3] in"},
    {TYPE, "a", "f128[2,3]", BAD, "found f128[2,3] in"},
    {TYPE, "a", "", BAD, "found  in 24 bytes"},
    {TYPE, "a", "texts", BAD, "found texts in"},
    {TYPE, "a", "u64[3]", BAD, "found u64[3] in"},
    {TYPE, "a", "f32[1,1,1,1,1,1,1,2,3]", BAD, "in 24 bytes"},
    /* products that are 6, 0 or 24 to 64 bits */
    {TYPE, "a", "f32[4294967296,4294967296,6]", BAD, "in 24 bytes"},
    {TYPE, "a", "f32[4611686018427387905,2,3]", BAD, "in 24 bytes"},
    {TYPE, "a", "f32[" MAX63 "," MAX63 "]", BAD, "in 24 bytes"},
    {TYPE, "none", "i64[" MAX63 "," MAX63 ",0]", TRN_ERR_SHAPE, "expected i64"},
    {TYPE, "none", "i64[1" MAX63 ",0]", BAD, "/tensors/none: found i64[1922"},
    {TYPE, "none", "text", BAD, "/tensors/none: found text in 0 bytes"},

    {PATH, "a", "/tensors/flag", BAD, "/tensors/flag is there twice"},
    {PATH, "a", "/tensors/b", TRN_ERR_SHAPE, "missing: /tensors/a"},
    {PATH, "a", "/tensors/A", TRN_ERR_SHAPE, "unexpected: /tensors/A"},
    {PATH, "a", "/tensors//a", TRN_ERR_SHAPE, "missing: /tensors/a"},
    {PATH, "a", "/tensors/./a", TRN_ERR_SHAPE, "missing: /tensors/a"},
    {PATH, "a", "/tensors/../tensors/a", TRN_ERR_SHAPE, "missing: /tensors/a"},
    {PATH, "a", "/tensors/a ", TRN_ERR_SHAPE, "missing: /tensors/a"},
    {PATH, "a", "/", TRN_ERR_SHAPE, "missing: /tensors/a"},
    {PATH, "a", "", BAD, "is damaged"},
    {PATH, "a", "tensors/a", BAD, "is damaged"},
    {PATH, "a", " /tensors/a", BAD, "is damaged"},
    {PATH, "a", "/tensors/a\x0E", BAD, "is damaged"}, /* a 0 */
    {PATH, "a", "/tensors/a\x0E/b", BAD, "is damaged"},
    {PATH, "a", "/tensors/a\x1B[2J", BAD, "is damaged"},
    {PATH, "a", "/tensors/a\x7F", BAD, "is damaged"},
    {PATH, "a", "/tensors/a\r", BAD, "is damaged"},
    {PATH, "a", "/tensors/a\n/tensors/b", BAD, "is damaged"},
    {PATH, "none", "/metadata/x", TRN_ERR_SHAPE, "missing: /tensors/none"},
};
enum { N_ATTACKS = sizeof attacks / sizeof attacks[0] };

static char *word_of(hostile_file *f, const attack *a, size_t *size)
{
    char path[64];
    snprintf(path, sizeof path, "/tensors/%s", a->path == NULL ? "" : a->path);
    hostile_line *l = a->path == NULL ? NULL : hostile_find(f, path);
    *size = sizeof f->size;
    switch (a->field) {
    case HEAD:
        *size = sizeof f->head;
        return f->head;
    case SIZE:
        return f->size;
    case INDEX:
        return f->index;
    case COUNT:
        return f->count;
    case AT:
        return l->at;
    case BYTES:
        return l->bytes;
    case TYPE:
        *size = sizeof l->type;
        return l->type;
    case PATH:
        *size = sizeof l->path;
        return l->path;
    }
    return NULL;
}

static void each_word_of_the_index_is_checked(void **state)
{
    (void)state;
    hostile_world w = hostile_begin();
    for (int i = 0; i < N_ATTACKS; i++) {
        const attack *a = &attacks[i];
        size_t size;
        hostile_file f = hostile_copy(&w.file);
        char *word = word_of(&f, a, &size);
        if (a->value[0] == '\0' && a->field < TYPE)
            snprintf(word, size, "%lld", strtoll(word, NULL, 10) + 1);
        else
            snprintf(word, size, "%s", a->value);
        hostile_seal(&f);
        trn_status status = hostile_try(&w, &f, a->part);
        CHECK(status == a->status, "attack %d, \"%s\": %s\n", i, a->value,
              trn_status_name(status));
        hostile_end(&f);
    }
    print_message("%d refused\n", w.n_refused);
    assert_int_equal(w.n_refused, N_ATTACKS);
    hostile_try(&w, &w.file, NULL); /* and the file as it was is good */
    hostile_finish(&w);
}

/* ---- lines and bytes ---- */

/* Changes a file; what the answer must have, or NULL if it is to be loaded. */
typedef const char *change_fn(hostile_file *f);

static void swap_lines(hostile_file *f, int i, int j)
{
    hostile_line kept = f->line[i];
    f->line[i] = f->line[j];
    f->line[j] = kept;
}

static int line_of(hostile_file *f, const char *path)
{
    return (int)(hostile_find(f, path) - f->line);
}

static const char *lines_in_another_order(hostile_file *f)
{
    int i = line_of(f, "/tensors/a");
    swap_lines(f, i, i - 1);
    return "lies at byte";
}

static const char *two_in_one_place(hostile_file *f)
{
    int i = line_of(f, "/tensors/a");
    memcpy(f->line[i].at, f->line[i - 1].at, sizeof f->line[i].at);
    return "/tensors/a lies at byte";
}

static const char *one_begins_in_another(hostile_file *f)
{
    int i = line_of(f, "/tensors/a");
    long long at = strtoll(f->line[i - 1].at, NULL, 10) +
                   strtoll(f->line[i - 1].bytes, NULL, 10) - 1;
    snprintf(f->line[i].at, sizeof f->line[i].at, "%lld", at);
    return "/tensors/a lies at byte";
}

static const char *one_ends_behind_the_file(hostile_file *f)
{
    hostile_line *l = &f->line[f->n_lines - 1];
    long long bytes = strtoll(l->bytes, NULL, 10);
    snprintf(l->at, sizeof l->at, "%lld", (long long)f->n - bytes + 1);
    return "lies at byte";
}

static const char *a_line_too_few(hostile_file *f)
{
    int i = line_of(f, "/tensors/a");
    f->n_lines--;
    memmove(&f->line[i], &f->line[i + 1],
            (size_t)(f->n_lines - i) * sizeof f->line[0]);
    snprintf(f->count, sizeof f->count, "%d", f->n_lines);
    return "missing: /tensors/a";
}

static const char *a_line_too_many(hostile_file *f)
{
    memmove(f->line + 1, f->line, (size_t)f->n_lines++ * sizeof f->line[0]);
    f->line[0] = (hostile_line){"0", "0", "u8[0]", "/tensors/more"};
    snprintf(f->count, sizeof f->count, "%d", f->n_lines);
    return "unexpected: /tensors/more";
}

static const char *a_note_that_is_no_text(hostile_file *f)
{
    a_line_too_many(f);
    snprintf(f->line[0].path, sizeof f->line[0].path, "/metadata/more");
    return "/metadata/more at byte 0: found u8[0]";
}

static const char *no_lines(hostile_file *f)
{
    f->n_lines = 0;
    snprintf(f->count, sizeof f->count, "0");
    return "missing: /context/step";
}

/* The file is larger, and the index says so: nobody's bytes are HDF5's. */
static const char *bytes_behind(hostile_file *f)
{
    hostile_splice(f, f->n, 0, "more", 4);
    snprintf(f->size, sizeof f->size, "%zu", f->n);
    return NULL;
}

/* Of a dataset, as a number. */
static void put_value(hostile_file *f, const char *path, const void *value,
                      size_t n)
{
    long long at = strtoll(hostile_find(f, path)->at, NULL, 10);
    memcpy(f->bytes + at, value, n);
}

static const char *put_i64(hostile_file *f, const char *path, int64_t value)
{
    put_value(f, path, &value, sizeof value);
    return path;
}

static const char *put_f64(hostile_file *f, const char *path, double value)
{
    put_value(f, path, &value, sizeof value);
    return path;
}

static const char *a_negative_step(hostile_file *f)
{
    return put_i64(f, "/context/step", -1);
}

static const char *negative_updates(hostile_file *f)
{
    return put_i64(f, "/optimizers/sgd/parameters/weight/updates", INT64_MIN);
}

static const char *negative_steps(hostile_file *f)
{
    return put_i64(f, "/optimizers/sgd/steps", -5);
}

static const char *a_rate_below_0(hostile_file *f)
{
    return put_f64(f, "/optimizers/sgd/learning_rate", -1e-9);
}

static const char *a_rate_of_infinity(hostile_file *f)
{
    return put_f64(f, "/optimizers/sgd/learning_rate", 1e308 * 10);
}

static const char *a_rate_that_is_no_number(hostile_file *f)
{
    return put_i64(f, "/optimizers/sgd/learning_rate", -1);
}

static const char *a_batch_beyond_the_pass(hostile_file *f)
{
    return put_i64(f, "/loaders/data/batch", 6); /* of 5: 5 is the end */
}

static const char *a_batch_below_0(hostile_file *f)
{
    return put_i64(f, "/loaders/data/batch", -1);
}

static const char *an_epoch_beyond_counting(hostile_file *f)
{
    return put_i64(f, "/loaders/data/epoch", INT64_MAX / 6 + 1);
}

static const char *an_epoch_below_0(hostile_file *f)
{
    return put_i64(f, "/loaders/data/epoch", -1);
}

static const char *another_seed(hostile_file *f)
{
    put_i64(f, "/context/seed", 99);
    return "/context/seed: found 99, expected 0";
}

static const char *a_text_without_an_end(hostile_file *f)
{
    put_value(f, "/metadata/note", "oneX", 4);
    return "/metadata/note at byte";
}

static const char *a_text_that_ends_early(hostile_file *f)
{
    put_value(f, "/metadata/note", "o\0e", 4);
    return "a text that is not UTF-8 up to its end";
}

static const char *a_text_that_is_not_utf8(hostile_file *f)
{
    put_value(f, "/metadata/note", "\xED\xA0\x80", 4);
    return "a text that is not UTF-8 up to its end";
}

static const char *rename_note(hostile_file *f, const char *path)
{
    hostile_line *l = hostile_find(f, "/metadata/note");
    snprintf(l->path, sizeof l->path, "%s", path);
    return "a name that is not escaped as we do";
}

static const char *a_key_with_a_lone_percent(hostile_file *f)
{
    return rename_note(f, "/metadata/no%te");
}

static const char *a_key_that_is_cut(hostile_file *f)
{
    return rename_note(f, "/metadata/note%4");
}

static const char *a_key_with_a_zero(hostile_file *f)
{
    return rename_note(f, "/metadata/no%00te");
}

static const char *a_key_without_a_name(hostile_file *f)
{
    return rename_note(f, "/metadata/");
}

static const char *a_key_escaped_without_need(hostile_file *f)
{
    return rename_note(f, "/metadata/%6Eote");
}

static const char *a_key_in_another_group(hostile_file *f)
{
    return rename_note(f, "/metadata/no/te");
}

static void what_does_not_make_sense_is_refused(void **state)
{
    (void)state;
    static change_fn *const changes[] = {
        lines_in_another_order,
        two_in_one_place,
        one_begins_in_another,
        one_ends_behind_the_file,
        a_line_too_few,
        a_line_too_many,
        a_note_that_is_no_text,
        no_lines,
        bytes_behind,
        a_negative_step,
        negative_updates,
        negative_steps,
        a_rate_below_0,
        a_rate_of_infinity,
        a_rate_that_is_no_number,
        a_batch_beyond_the_pass,
        a_batch_below_0,
        an_epoch_beyond_counting,
        an_epoch_below_0,
        another_seed,
        a_text_without_an_end,
        a_text_that_ends_early,
        a_text_that_is_not_utf8,
        a_key_with_a_lone_percent,
        a_key_that_is_cut,
        a_key_with_a_zero,
        a_key_without_a_name,
        a_key_escaped_without_need,
        a_key_in_another_group,
    };
    enum { N = sizeof changes / sizeof changes[0] };
    hostile_world w = hostile_begin();
    for (int i = 0; i < N; i++) {
        hostile_file f = hostile_copy(&w.file);
        const char *part = changes[i](&f);
        hostile_seal(&f);
        hostile_try(&w, &f, part);
        hostile_end(&f);
    }
    print_message("%d refused, %d loaded\n", w.n_refused, w.n_loaded);
    hostile_finish(&w);
}
#endif

/* ---- by hand ---- */

/* The index is all that loading needs, so this works in every build. */
static void a_file_written_by_hand_is_loaded(void **state)
{
    trn_context *c = *state;
    static const unsigned char data[8] = {0, 0, 0x80, 0x3F, 0, 0, 0x20, 0xC1};
    const char *path = checkpoint_path("hand.h5");
    hostile_file f = {
        .bytes = calloc(1, 520),
        .n = 520,
        .room = 512,
        .head = "libtrn checkpoint 1",
        .size = "520",
        .index = "512",
        .count = "2",
        .line = {{"0", "0", "bf16[0]", "/tensors/none"},
                 {"512", "8", "f32[2,1]", "/tensors/two%2Fone"}},
        .n_lines = 2,
    };
    assert_non_null(f.bytes);
    memcpy(f.bytes + 512, data, 8);
    hostile_seal(&f);
    checkpoint_put(path, f.bytes, f.n);
    hostile_end(&f);
    trn_checkpoint *k = trn_checkpoint_new(c);
    trn_tensor *t = trn_tensor_zeros(c, TRN_F32, 2, (int64_t[]){2, 1});
    trn_checkpoint_tensor(k, "two/one", t);
    trn_checkpoint_load_part(k, path);
    harness_ok(c);
    harness_equal(t, 2, 1.0, -10.0);
    trn_checkpoint_load(k, path);
    harness_error(c, TRN_ERR_SHAPE, "missing: /context/step");
}

int main(void)
{
    checkpoint_folder();
    const struct CMUnitTest tests[] = {
        TRN_TEST(a_file_written_by_hand_is_loaded),
#ifdef TRN_HAVE_HDF5
        cmocka_unit_test(each_word_of_the_index_is_checked),
        cmocka_unit_test(what_does_not_make_sense_is_refused),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
