/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules as bytes, read by a reader of the tests' own.  Numbers of fields are
 * those of XLA's format.
 */
#include "hlo_sample.h"
#include "hlo_wire.h"

#include <stdio.h>

static hlo_world world, other;

static void need_protobufc(void)
{
    if (!trn__hlo_available()) {
        printf("built without protobuf-c\n");
        skip();
    }
}

static wire encoded(hlo_world *w)
{
    size_t n = 0;
    need_protobufc();
    const uint8_t *bytes = trn__hlo_encode(&w->m, &n);
    assert_non_null(bytes);
    assert_int_equal(w->live, 1); /* the tree of messages is gone */
    return (wire){.at = bytes, .n = n};
}

static void release(hlo_world *w, wire bytes)
{
    void *memory = NULL;
    memcpy(&memory, &bytes.at, sizeof memory);
    world_dealloc(w, memory);
    assert_int_equal(w->live, 0);
}

static void is_list(wire w, uint32_t field, int n, const int64_t *want)
{
    int64_t found[32];
    CHECK(wire_list(w, field, found, 32) == n, "field %u\n", field);
    for (int i = 0; i < n; i++)
        CHECK(found[i] == want[i], "field %u: [%d] is %lld\n", field, i,
              (long long)found[i]);
}

/* Computations, instructions and their parts, by numbers of fields. */
enum { HELPER_ADD, HELPER_COPY, ENTRY };

static wire instruction(wire module, int computation, int i)
{
    return wire_message(wire_message(module, 3, computation), 2, i);
}

static void equal_modules_have_equal_bytes(void **state)
{
    (void)state;
    sample_begin(&world);
    sample_begin(&other);
    world_is_sound(&world);
    const wire a = encoded(&world), b = encoded(&other);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.at, b.at, a.n);
    release(&other, b);
    other.insts[S_HALF].literal ^= 1;
    const wire c = encoded(&other);
    assert_true(c.n != a.n || memcmp(a.at, c.at, a.n) != 0);
    release(&other, c);
    release(&world, a);
}

static void memory_that_runs_out_is_no_module_and_no_leak(void **state)
{
    (void)state;
    int64_t allowed = 0;
    void *bytes = NULL;
    need_protobufc();
    sample_begin(&world);
    for (; bytes == NULL; allowed++) {
        size_t n = 1;
        world.allowed = allowed;
        bytes = trn__hlo_encode(&world.m, &n);
        assert_int_equal(n > 0, bytes != NULL);
        assert_int_equal(world.live, bytes != NULL);
    }
    world_dealloc(&world, bytes);
    assert_true(allowed > 2); /* the tree, and the bytes */
}

static void a_module_names_its_computations_helpers_first(void **state)
{
    (void)state;
    static const char *const names[] = {"add_f32.1", "copy_f32.2", "main"};
    static const int64_t roots[] = {3, 6, 6 + S_ROOT + 1};
    sample_begin(&world);
    const wire m = encoded(&world);
    assert_true(wire_is(wire_message(m, 1, 0), "trn_step"));
    assert_true(wire_is(wire_message(m, 2, 0), "main"));
    assert_int_equal(wire_number(m, 6), 3);
    assert_int_equal(wire_count(m, 3), 3);
    for (int i = 0; i < 3; i++) {
        const wire c = wire_message(m, 3, i);
        assert_true(wire_is(wire_message(c, 1, 0), names[i]));
        assert_int_equal(wire_number(c, 5), i + 1);
        assert_int_equal(wire_number(c, 6), roots[i]);
        assert_int_equal(wire_count(c, 2), i == ENTRY ? S_ROOT + 1 : 3);
    }
    release(&world, m);
}

static void ids_count_from_one_and_names_are_unique(void **state)
{
    (void)state;
    wire names[64];
    int n = 0;
    sample_begin(&world);
    const wire m = encoded(&world);
    for (int c = 0; c < 3; c++) {
        const int insts = wire_count(wire_message(m, 3, c), 2);
        for (int i = 0; i < insts; i++) {
            const wire inst = instruction(m, c, i);
            assert_int_equal(wire_number(inst, 35), n + 1);
            names[n] = wire_message(inst, 1, 0);
            for (int k = 0; k < n; k++)
                assert_true(names[k].n != names[n].n ||
                            memcmp(names[k].at, names[n].at, names[n].n) != 0);
            n++;
        }
    }
    assert_true(wire_is(names[6], "param.0"));
    assert_true(wire_is(names[6 + S_SUM], "add.13"));
    release(&world, m);
}

/* Shape, dimensions and layout, tuples included. */
static void is_shape(wire w, const trn__hlo_shape *want)
{
    int64_t descending[TRN__HLO_MAX_RANK];
    for (uint32_t d = 0; d < want->rank; d++)
        descending[d] = (int64_t)(want->rank - 1 - d);
    assert_int_equal(wire_number(w, 2), want->type);
    is_list(w, 3, (int)want->rank, want->dims);
    is_list(wire_message(w, 5, 0), 1, (int)want->rank, descending);
}

static void is_result(wire w, const hlo_world *from)
{
    const trn__hlo_inst *root = &from->insts[from->m.n_insts - 1];
    assert_int_equal(wire_number(w, 2), TRN__HLO_TUPLE);
    assert_int_equal(wire_count(w, 4), root->n_operands);
    for (int k = 0; k < root->n_operands; k++)
        is_shape(wire_message(w, 4, k),
                 &from->insts[trn__hlo_operand(&from->m, root, k)].shape);
}

static void every_array_has_a_descending_layout(void **state)
{
    (void)state;
    sample_begin(&world);
    const wire m = encoded(&world);
    for (int i = 0; i < S_ROOT; i++)
        is_shape(wire_message(instruction(m, ENTRY, i), 3, 0),
                 &world.insts[i].shape);
    is_result(wire_message(instruction(m, ENTRY, S_ROOT), 3, 0), &world);
    const wire literal = wire_message(instruction(m, ENTRY, S_HALF), 8, 0);
    is_shape(wire_message(literal, 1, 0), &world.insts[S_HALF].shape);
    release(&world, m);
}

static void program_shapes_tell_parameters_and_result(void **state)
{
    (void)state;
    static const char *const names[] = {"param.0", "param.1", "param.2"};
    const trn__hlo_shape scalar = SCALAR(F32);
    sample_begin(&world);
    const wire m = encoded(&world);
    const wire both[] = {wire_message(m, 4, 0),
                         wire_message(wire_message(m, 3, ENTRY), 4, 0)};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(wire_count(both[k], 1), 3);
        assert_int_equal(wire_count(both[k], 3), 3);
        for (int i = 0; i < 3; i++) {
            is_shape(wire_message(both[k], 1, i), &world.insts[i].shape);
            assert_true(wire_is(wire_message(both[k], 3, i), names[i]));
        }
        is_result(wire_message(both[k], 2, 0), &world);
    }
    const wire h = wire_message(wire_message(m, 3, HELPER_ADD), 4, 0);
    assert_int_equal(wire_count(h, 1), 2);
    is_shape(wire_message(h, 1, 1), &scalar);
    is_shape(wire_message(h, 2, 0), &scalar);
    release(&world, m);
}

static void instructions_have_opcode_operands_and_helper(void **state)
{
    (void)state;
    sample_begin(&world);
    const wire m = encoded(&world);
    const wire add = instruction(m, ENTRY, S_SUM);
    assert_true(wire_is(wire_message(add, 2, 0), "add"));
    is_list(add, 36, 2, (int64_t[]){7 + S_DOT, 7 + S_HALVES});
    is_list(instruction(m, ENTRY, S_REDUCE), 38, 1, (int64_t[]){1});
    is_list(instruction(m, ENTRY, S_SCATTER), 38, 1, (int64_t[]){2});
    is_list(instruction(m, HELPER_ADD, 2), 36, 2, (int64_t[]){1, 2});
    const wire copy = instruction(m, HELPER_COPY, 2);
    assert_true(wire_is(wire_message(copy, 2, 0), "copy"));
    is_list(copy, 36, 1, (int64_t[]){5});
    assert_int_equal(wire_number(instruction(m, HELPER_COPY, 1), 9), 1);
    assert_int_equal(wire_number(instruction(m, ENTRY, S_I), 9), 2);
    release(&world, m);
}

static void dimensions_stand_in_the_fields_of_their_opcode(void **state)
{
    (void)state;
    sample_begin(&world);
    const wire m = encoded(&world);
    const wire dot = wire_message(instruction(m, ENTRY, S_DOT), 30, 0);
    is_list(dot, 1, 1, (int64_t[]){1});
    is_list(dot, 2, 1, (int64_t[]){0});
    assert_int_equal(wire_count(dot, 3) + wire_count(dot, 4), 0);
    is_list(instruction(m, ENTRY, S_HALVES), 14, 0, NULL);
    is_list(instruction(m, ENTRY, S_REDUCE), 14, 1, (int64_t[]){1});
    is_list(instruction(m, ENTRY, S_TRANSPOSE), 14, 2, (int64_t[]){1, 0});
    is_list(instruction(m, ENTRY, S_CONCATENATE), 14, 1, (int64_t[]){0});
    is_list(instruction(m, ENTRY, S_IOTA), 14, 1, (int64_t[]){1});
    const wire compare = instruction(m, ENTRY, S_MORE);
    assert_true(wire_is(wire_message(compare, 63, 0), "GT"));
    release(&world, m);
}

static void a_reversal_names_its_dimensions(void **state)
{
    (void)state;
    world_begin(&world);
    const int32_t x = param(&world, SHAPE(F32, 5, 2, 3));
    const int32_t y = PUT(&world, REVERSE, SHAPE(F32, 5, 2, 3), x);
    *sample_list(&world, y, 0) = LIST(0, 2);
    ROOT(&world, y);
    const wire m = encoded(&world);
    is_list(instruction(m, 0, y), 14, 2, (int64_t[]){0, 2});
    release(&world, m);
}

static void slices_and_padding_are_told_by_dimension(void **state)
{
    (void)state;
    sample_begin(&world);
    const wire m = encoded(&world);
    const wire slice = instruction(m, ENTRY, S_SLICE);
    const wire pad = wire_message(instruction(m, ENTRY, S_PAD), 21, 0);
    assert_int_equal(wire_count(slice, 17), 2);
    assert_int_equal(wire_count(pad, 1), 2);
    for (int d = 0; d < 2; d++) {
        const wire s = wire_message(slice, 17, d);
        const wire p = wire_message(pad, 1, d);
        for (uint32_t k = 0; k < 3; k++) {
            const trn__hlo_list *of_slice =
                sample_list(&world, S_SLICE, (int)k);
            const trn__hlo_list *of_pad = sample_list(&world, S_PAD, (int)k);
            assert_int_equal(wire_number(s, k + 1), of_slice->at[d]);
            assert_int_equal(wire_number(p, k + 1), of_pad->at[d]);
        }
    }
    release(&world, m);
}

static void gather_and_scatter_have_their_numbers(void **state)
{
    (void)state;
    sample_begin(&world);
    const wire m = encoded(&world);
    const wire gather = instruction(m, ENTRY, S_GATHER);
    is_list(gather, 34, 2, (int64_t[]){1, 4});
    const wire both[] = {wire_message(gather, 33, 0),
                         wire_message(instruction(m, ENTRY, S_SCATTER), 48, 0)};
    for (int k = 0; k < 2; k++) {
        is_list(both[k], 1, 1, (int64_t[]){1});
        is_list(both[k], 2, 1, (int64_t[]){0});
        is_list(both[k], 3, 1, (int64_t[]){0});
        assert_int_equal(wire_number(both[k], 4), 1);
    }
    release(&world, m);
}

static void aliases_may_be_taken(void **state)
{
    (void)state;
    sample_begin(&world);
    const wire m = encoded(&world);
    const wire aliases = wire_message(m, 8, 0);
    assert_int_equal(wire_count(aliases, 1), 2);
    for (int i = 0; i < 2; i++) {
        const wire entry = wire_message(aliases, 1, i);
        is_list(entry, 1, 1, (int64_t[]){world.aliases[i].result});
        assert_int_equal(wire_number(entry, 2), world.aliases[i].param);
        assert_int_equal(wire_count(entry, 3), 0);
        assert_int_equal(wire_number(entry, 4), 1);
    }
    release(&world, m);
}

/* A literal's field, and the bytes in it. */
static const struct {
    uint32_t type, field;
    uint64_t bits;
    size_t n;
    const char *bytes;
} literals[] = {
    {TRN__HLO_PRED, 2, 1, 1, "\x01"},
    {TRN__HLO_U8, 3, 200, 1, "\xc8"},
    {TRN__HLO_S32, 4, 0xfffffff9, 10,
     "\xf9\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
    {TRN__HLO_S64, 5, 300, 2, "\xac\x02"},
    {TRN__HLO_U32, 6, 0xffffffff, 5, "\xff\xff\xff\xff\x0f"},
    {TRN__HLO_U64, 7, UINT64_C(1) << 63, 10,
     "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"},
    {TRN__HLO_F32, 8, 0x3f800000, 4, "\x00\x00\x80\x3f"},
    {TRN__HLO_F64, 9, UINT64_C(0x3ff0000000000001), 8,
     "\x01\x00\x00\x00\x00\x00\xf0\x3f"},
    {TRN__HLO_F16, 11, 0x3e01, 2, "\x01\x3e"},
    {TRN__HLO_BF16, 13, 0xc020, 2, "\x20\xc0"},
    {TRN__HLO_F32, 8, 0, 4, "\x00\x00\x00\x00"},
    {TRN__HLO_F16, 11, 0, 2, "\x00\x00"},
    {TRN__HLO_S64, 5, 0, 1, "\x00"},
    {TRN__HLO_PRED, 2, 0, 1, "\x00"},
};
enum { N_LITERALS = sizeof literals / sizeof literals[0] };

static void constants_stand_in_the_field_of_their_type(void **state)
{
    (void)state;
    int32_t all[N_LITERALS];
    world_begin(&world);
    for (int i = 0; i < N_LITERALS; i++)
        all[i] = constant(&world, literals[i].type, literals[i].bits);
    put(&world, TRN__HLO_OP_TUPLE_OF, shape_of(TRN__HLO_TUPLE, 0, NULL),
        N_LITERALS, all);
    world_is_sound(&world);
    const wire m = encoded(&world);
    for (int i = 0; i < N_LITERALS; i++) {
        const wire p = wire_message(instruction(m, 0, i), 8, 0);
        const wire found = wire_message(p, literals[i].field, 0);
        CHECK(found.n == literals[i].n &&
                  memcmp(found.at, literals[i].bytes, found.n) == 0,
              "literal %d\n", i);
    }
    release(&world, m);
}

static void a_module_of_many_instructions_is_whole(void **state)
{
    (void)state;
    world_begin(&world);
    int32_t at = param(&world, SHAPE(F32, 2, 3));
    for (int i = 0; i < 400; i++)
        at = PUT(&world, COPY, SHAPE(F32, 2, 3), at);
    ROOT(&world, at);
    world_is_sound(&world);
    const wire m = encoded(&world);
    assert_int_equal(wire_count(wire_message(m, 3, 0), 2), 402);
    is_list(instruction(m, 0, 400), 36, 1, (int64_t[]){400});
    release(&world, m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_modules_have_equal_bytes),
        cmocka_unit_test(memory_that_runs_out_is_no_module_and_no_leak),
        cmocka_unit_test(a_module_names_its_computations_helpers_first),
        cmocka_unit_test(ids_count_from_one_and_names_are_unique),
        cmocka_unit_test(every_array_has_a_descending_layout),
        cmocka_unit_test(program_shapes_tell_parameters_and_result),
        cmocka_unit_test(instructions_have_opcode_operands_and_helper),
        cmocka_unit_test(dimensions_stand_in_the_fields_of_their_opcode),
        cmocka_unit_test(a_reversal_names_its_dimensions),
        cmocka_unit_test(slices_and_padding_are_told_by_dimension),
        cmocka_unit_test(gather_and_scatter_have_their_numbers),
        cmocka_unit_test(aliases_may_be_taken),
        cmocka_unit_test(constants_stand_in_the_field_of_their_type),
        cmocka_unit_test(a_module_of_many_instructions_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
