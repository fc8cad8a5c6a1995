/* SPDX-License-Identifier: Apache-2.0
 *
 * Today's header of devices extends the frozen one, and so does the table of
 * ops: what a device was built with goes on being true.
 */
#include "frozen_layout.h"
#include "harness.h"
#include "libtrn/dispatch/dispatch.h"

/* Structs without a size of their own, and what stands behind them. */
_Static_assert(TRN_MAX_RANK == 8, "fixed for ever");
_Static_assert(sizeof(trn_arg) == sizeof(void *) + 16 + 16 * 8 &&
                   offsetof(trn_arg, stride) == sizeof(void *) + 16 + 8 * 8,
               "trn_arg is fixed for ever");
_Static_assert(sizeof(trn_op_report) == 32 &&
                   offsetof(trn_op_report, limit) == 24,
               "trn_op_report is fixed for ever");
_Static_assert(offsetof(trn_outcome, report) == 16,
               "trn_outcome grows behind its report");

static const frozen_struct structs[] = {
#define FROZEN_STRUCT FROZEN_STRUCT_ENTRY
#include "plugins/frozen_fields_v1.def"
};

static const frozen_field fields[] = {
#define FROZEN_FIELD FROZEN_FIELD_ENTRY
#include "plugins/frozen_fields_v1.def"
};

static const frozen_constant constants[] = {
#define FROZEN_CONSTANT FROZEN_CONSTANT_ENTRY
#include "plugins/frozen_fields_v1.def"
};

static const frozen_row rows[] = {
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    FROZEN_ROW_ENTRY(id, nm, cls, n_in, writes, attrs, kind)
#include "trn/ops.def"
};

static const frozen_attrs kinds[] = {
#define TRN_ATTRS FROZEN_ATTRS_ENTRY
#include "trn/ops.def"
};

enum {
    N_ROWS = sizeof rows / sizeof rows[0],
    N_KINDS = sizeof kinds / sizeof kinds[0]
};

static void structs_grow_at_their_ends_only(void **state)
{
    (void)state;
    for (int i = 0; frozen_structs[i].type != NULL; i++) {
        const frozen_struct *was = &frozen_structs[i], *is = &structs[i];
        CHECK(was->fixed ? is->bytes == was->bytes : is->bytes >= was->bytes,
              "%s had %zu bytes, has %zu\n", was->type, was->bytes, is->bytes);
    }
    for (int i = 0; frozen_fields[i].type != NULL; i++) {
        const frozen_field *was = &frozen_fields[i], *is = &fields[i];
        CHECK(is->offset == was->offset && is->bytes == was->bytes,
              "%s.%s was at %zu with %zu bytes, is at %zu with %zu\n",
              was->type, was->field, was->offset, was->bytes, is->offset,
              is->bytes);
    }
}

/* No gap that a field could hide in: the list of fields is whole. */
static void each_field_of_the_frozen_structs_is_listed(void **state)
{
    (void)state;
    int n = 0;
    for (int i = 0; frozen_structs[i].type != NULL; i++) {
        size_t end = 0;
        const frozen_struct *s = &frozen_structs[i];
        for (const frozen_field *f = frozen_fields; f->type != NULL; f++) {
            if (strcmp(f->type, s->type) != 0)
                continue;
            size_t gap = f->offset - end;
            CHECK(f->offset >= end && (gap == 0 || gap == 4),
                  "%s: something stands before %s\n", s->type, f->field);
            end = f->offset + f->bytes;
            n++;
        }
        CHECK(end == s->bytes || end + 4 == s->bytes, "%s: its end\n", s->type);
    }
    assert_int_equal(n, sizeof fields / sizeof fields[0]);
}

static void constants_keep_their_values(void **state)
{
    (void)state;
    for (int i = 0; frozen_constants[i].name != NULL; i++)
        CHECK(constants[i].value == frozen_constants[i].value,
              "%s was %lld, is %lld\n", constants[i].name,
              (long long)frozen_constants[i].value,
              (long long)constants[i].value);
}

static const frozen_row *row_of(const char *name)
{
    for (int i = 0; i < N_ROWS; i++) {
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    return NULL;
}

static void a_released_id_keeps_its_meaning(void **state)
{
    (void)state;
    for (const frozen_row *was = frozen_rows; was->name != NULL; was++) {
        const frozen_row *is = row_of(was->name);
        CHECK(is != NULL, "row %s is gone\n", was->name);
        CHECK(is->id == was->id, "%s: another id\n", was->name);
        CHECK(strcmp(is->cls, was->cls) == 0, "%s: another class\n", was->name);
        CHECK(is->n_in == was->n_in, "%s: another n_in\n", was->name);
        CHECK(is->writes == was->writes, "%s: other writes\n", was->name);
        CHECK(strcmp(is->attrs, was->attrs) == 0, "%s: another kind of attrs\n",
              was->name);
        CHECK(strcmp(is->kind, was->kind) == 0, "%s: PRIM, COMP\n", was->name);
    }
}

static void kinds_of_attributes_keep_their_fields(void **state)
{
    (void)state;
    for (const frozen_attrs *was = frozen_kinds; was->name != NULL; was++) {
        const frozen_attrs *is = NULL;
        for (int i = 0; i < N_KINDS && is == NULL; i++)
            is = strcmp(kinds[i].name, was->name) == 0 ? &kinds[i] : NULL;
        CHECK(is != NULL, "kind %s is gone\n", was->name);
        CHECK(strcmp(is->fields, was->fields) == 0, "%s had %s, has %s\n",
              was->name, was->fields, is->fields);
        CHECK(is->bytes == was->bytes, "%s had %zu bytes, has %zu\n", was->name,
              was->bytes, is->bytes);
    }
}

static void a_new_id_lies_above_all_released_ones(void **state)
{
    uint32_t highest = 0;
    (void)state;
    for (int i = 0; i < N_ROWS; i++) {
        bool released = false;
        for (const frozen_row *was = frozen_rows; was->name != NULL; was++)
            released |= was->id == rows[i].id;
        CHECK(released || rows[i].id >= frozen_op_known, "%s: id %u\n",
              rows[i].name, (unsigned)rows[i].id);
        highest = rows[i].id > highest ? rows[i].id : highest;
    }
    assert_int_equal(highest + 1, TRN_OP_KNOWN);
    assert_true((int)TRN_OP_KNOWN <= (int)TRN_OP_LIMIT);
}

/* A table without op_limit has the ids of the freeze; one with it, its own. */
static void a_device_knows_the_ops_it_was_built_with(void **state)
{
    trn_backend b = {.size = sizeof b};
    (void)state;
    assert_int_equal(TRN__OPS_OF_THE_FREEZE, frozen_op_known);
    assert_true(trn__knows(&b, frozen_op_known - 1));
    assert_false(trn__knows(&b, frozen_op_known));
    b.op_limit = 83;
    assert_true(trn__knows(&b, 82));
    assert_false(trn__knows(&b, 83));
    b.op_limit = TRN_OP_LIMIT + 7; /* of a later version */
    assert_true(trn__knows(&b, TRN_OP_KNOWN - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structs_grow_at_their_ends_only),
        cmocka_unit_test(each_field_of_the_frozen_structs_is_listed),
        cmocka_unit_test(constants_keep_their_values),
        cmocka_unit_test(a_released_id_keeps_its_meaning),
        cmocka_unit_test(kinds_of_attributes_keep_their_fields),
        cmocka_unit_test(a_new_id_lies_above_all_released_ones),
        cmocka_unit_test(a_device_knows_the_ops_it_was_built_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
