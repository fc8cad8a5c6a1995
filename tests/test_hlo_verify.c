/* SPDX-License-Identifier: Apache-2.0
 *
 * The verifier of modules: a sound one passes, and each fault is told by name.
 *
 * Every case takes the sound sample, breaks one thing, and says what part of
 * the message must read.
 */
#include "hlo_sample.h"

static hlo_world world, *const w = &world;
static trn__hlo_profile profile;

static void refused(const char *part)
{
    char message[512] = "";
    CHECK(!trn__hlo_verify(&w->m, &profile, message, sizeof message), "%s\n",
          part);
    CHECK(strstr(message, part) != NULL, "%s\n%s\n", part, message);
}

/* Breaks a fresh sample by the statement, and looks at the message. */
#define REFUSED(part, statement) \
    do {                         \
        profile = all_of_it;     \
        sample_begin(w);         \
        statement;               \
        refused(part);           \
    } while (0)

static trn__hlo_inst *inst(int32_t i)
{
    return &w->insts[i];
}

static trn__hlo_list *list(int32_t i, int which)
{
    return sample_list(w, i, which);
}

static void set_operand(int32_t i, int k, int32_t to)
{
    w->operands[inst(i)->first_operand + k] = to;
}

static void the_sample_is_sound(void **state)
{
    (void)state;
    sample_begin(w);
    world_is_sound(w);
}

/* ---- what holds a module together ---- */

static void structure_is_checked(void **state)
{
    (void)state;
    REFUSED("no instructions", w->m.n_insts = 0);
    REFUSED("no instructions", w->m.insts = NULL);
    REFUSED("a negative count", w->m.n_aliases = -1);
    REFUSED("is NULL", w->m.operands = NULL);
    REFUSED("is NULL", w->m.helpers = NULL);
    REFUSED("the last instruction is copy", w->m.n_insts--);
    REFUSED("a tuple that is not the root", ROOT(w, S_X));
    REFUSED("expected ids below 2^31", w->m.n_helpers = INT32_MAX);
    REFUSED("opcode 99 does not exist", inst(S_SUM)->op = 99);
}

static void operands_come_before_their_use(void **state)
{
    (void)state;
    REFUSED("add.13: operand 1 is instruction 6", set_operand(S_SUM, 1, S_SUM));
    REFUSED("add.13: operand 1 is instruction 8",
            set_operand(S_SUM, 1, S_SELECT));
    REFUSED("operand 0 is instruction -1", set_operand(S_SUM, 0, -1));
    REFUSED("add.13: 1 operands; expected 2", inst(S_SUM)->n_operands = 1);
    REFUSED("3 operands; expected 2", inst(S_SUM)->n_operands = 3);
    REFUSED("operands -1", inst(S_SUM)->first_operand = -1);
    REFUSED("operands 1000", inst(S_SUM)->first_operand = 1000);
    REFUSED("operands 2147483647", inst(S_SUM)->first_operand = INT32_MAX);
    REFUSED("-1 operands", inst(S_ROOT)->n_operands = -1);
    REFUSED("operands", inst(S_ROOT)->n_operands = INT32_MAX);
}

static void shapes_are_sound(void **state)
{
    (void)state;
    REFUSED("add.13: element type 7", inst(S_SUM)->shape.type = 7);
    REFUSED("element type 13", inst(S_SUM)->shape.type = TRN__HLO_TUPLE);
    REFUSED("rank 11", inst(S_SUM)->shape.rank = 11);
    REFUSED("dimension 1 is -4", inst(S_SUM)->shape.dims[1] = -4);
    REFUSED("dimension 0 is 2147483648", inst(S_SUM)->shape.dims[0] = INT64_C(1)
                                                                      << 31);
    REFUSED("more than 2^63 bytes",
            inst(S_X)->shape = SHAPE(F32, INT32_MAX, INT32_MAX, 4));
    REFUSED("expected tuple", inst(S_ROOT)->shape.type = TRN__HLO_F32);
    REFUSED("list 2 has 11 numbers", list(S_SLICE, 2)->n = 11);
    REFUSED("list 0 has -1 numbers", list(S_SLICE, 0)->n = -1);
    REFUSED("expected at most 2147483647", list(S_PAD, 0)->at[0] = INT64_MIN);
}

static void parameters_have_each_number_once(void **state)
{
    (void)state;
    REFUSED("parameter number 1 is there twice", inst(S_I)->number = 1);
    REFUSED("parameter number 3; the module has 3", inst(S_I)->number = 3);
    REFUSED("parameter number -1", inst(S_I)->number = -1);
    REFUSED("module: no parameter 3 of 4", w->m.n_params = 4);
}

static void aliases_join_equal_shapes_once(void **state)
{
    (void)state;
    REFUSED("result 1 is f32[3,4], aliased parameter 0 is f32[2,3]", {
        w->aliases[0].param = 0;
        w->aliases[1].param = 1;
    });
    REFUSED("alias of result 7", w->aliases[0].result = 7);
    REFUSED("alias of result -1", w->aliases[0].result = -1);
    REFUSED("parameter 3; there are 7 and 3", w->aliases[0].param = 3);
    REFUSED("aliased twice", take_over(w, 6, 1));
    REFUSED("aliased twice", take_over(w, 1, 2));
}

static void constants_fit_their_type(void **state)
{
    (void)state;
    REFUSED("rank 1; expected a scalar", inst(S_HALF)->shape = SHAPE(F32, 1));
    REFUSED("has more bits than f32", inst(S_HALF)->literal |= 1ull << 32);
    REFUSED("literal 2 has more bits than pred", {
        inst(S_HALF)->shape.type = TRN__HLO_PRED;
        inst(S_HALF)->literal = 2;
    });
}

static void helpers_are_of_the_right_type(void **state)
{
    (void)state;
    REFUSED("reduce.16: helper 2", inst(S_REDUCE)->helper = 2);
    REFUSED("reduce.16: helper -1", inst(S_REDUCE)->helper = -1);
    REFUSED("add.13: helper 0; expected -1", inst(S_SUM)->helper = 0);
    REFUSED("the helper is add of f64", w->helpers[0].type = TRN__HLO_F64);
    REFUSED("the helper is copy of f32", inst(S_REDUCE)->helper = 1);
    REFUSED("the helper is subtract", w->helpers[0].op = TRN__HLO_OP_SUBTRACT);
    REFUSED("the helper is of s32", w->helpers[1].type = TRN__HLO_S32);
    REFUSED("the helper is divide", w->helpers[1].op = TRN__HLO_OP_DIVIDE);
    REFUSED("helper 0 is negate", w->helpers[0].op = TRN__HLO_OP_NEGATE);
    REFUSED("helper 0 is dot", w->helpers[0].op = TRN__HLO_OP_DOT);
    REFUSED("helper 0 is and of f32", w->helpers[0].op = TRN__HLO_OP_AND);
    REFUSED("opcode 77", w->helpers[1].op = 77);
}

/* ---- shapes by opcode ---- */

static void elementwise_shapes_are_worked_out(void **state)
{
    (void)state;
    REFUSED("add.13: shape is f32[2,5]; expected f32[2,4]",
            inst(S_SUM)->shape.dims[1] = 5);
    REFUSED("operand 0 is f32[2,4], operand 1 is f32[]; expected equal shapes",
            set_operand(S_SUM, 1, S_HALF));
    REFUSED("is not defined for s32", inst(S_AND)->op = TRN__HLO_OP_ATAN2);
    REFUSED("is not defined for f32", inst(S_SUM)->op = TRN__HLO_OP_XOR);
    REFUSED("is not defined for f32", inst(S_SUM)->op = TRN__HLO_OP_SHIFT_LEFT);
    REFUSED("is not defined for f32", inst(S_NEGATE)->op = TRN__HLO_OP_NOT);
    REFUSED("shape is f32[3,4]; expected f32[2,3]",
            set_operand(S_COPY, 0, S_X));
    REFUSED("expected f32[2,3]", inst(S_CONVERT)->shape.dims[0] = 3);
    REFUSED("operand 0 is f32; expected pred",
            set_operand(S_SELECT, 0, S_HALVES));
    REFUSED("operand 1 is f32[2,4], operand 2 is f32[2,3]",
            set_operand(S_SELECT, 2, S_X));
    REFUSED("operands 0 and 1 differ", set_operand(S_SELECT, 1, S_HALF));
    REFUSED("direction 6 does not exist", inst(S_MORE)->number = 6);
    REFUSED("direction -1 does not exist", inst(S_MORE)->number = -1);
    REFUSED("expected pred[2,4]", inst(S_MORE)->shape.type = TRN__HLO_U8);
}

static void moved_shapes_are_worked_out(void **state)
{
    (void)state;
    REFUSED("15 elements become 14", inst(S_RESHAPE)->shape.dims[0] = 14);
    REFUSED("expected f32[15]", inst(S_RESHAPE)->shape.type = TRN__HLO_S32);
    REFUSED("dimensions has 1 numbers; expected 0",
            *list(S_HALVES, 0) = LIST(0));
    REFUSED("expected f32[3,4]", {
        inst(S_COPY)->op = TRN__HLO_OP_BROADCAST;
        inst(S_COPY)->shape = SHAPE(F32, 3, 5);
        *list(S_COPY, 0) = LIST(0, 1);
    });
    REFUSED("reverse.29: dimensions has 1 twice", {
        inst(S_COPY)->op = TRN__HLO_OP_REVERSE;
        *list(S_COPY, 0) = LIST(1, 1);
    });
    REFUSED("dimensions has 2", {
        inst(S_COPY)->op = TRN__HLO_OP_REVERSE;
        *list(S_COPY, 0) = LIST(2);
    });
    REFUSED("expected f32[3,4]", {
        inst(S_COPY)->op = TRN__HLO_OP_REVERSE;
        inst(S_COPY)->shape = SHAPE(F32, 4, 3);
        *list(S_COPY, 0) = LIST(0);
    });
    REFUSED("dimensions has 0 twice", *list(S_TRANSPOSE, 0) = LIST(0, 0));
    REFUSED("dimensions has 2", *list(S_TRANSPOSE, 0) = LIST(0, 2));
    REFUSED("dimensions has -1", *list(S_TRANSPOSE, 0) = LIST(0, -1));
    REFUSED("expected f32[2,3]", *list(S_TRANSPOSE, 0) = LIST(0, 1));
    REFUSED("dimensions has 2", *list(S_CONCATENATE, 0) = LIST(2));
    REFUSED("differ in more than dimension 1",
            *list(S_CONCATENATE, 0) = LIST(1));
    REFUSED("concatenate.22: no operands", inst(S_CONCATENATE)->n_operands = 0);
    REFUSED("iota.24: dimensions has 2", *list(S_IOTA, 0) = LIST(2));
    REFUSED("not defined for pred", inst(S_IOTA)->shape.type = TRN__HLO_PRED);
}

static void slices_and_padding_are_worked_out(void **state)
{
    (void)state;
    REFUSED("[0:4:2] of dimension 0, which is 3", list(S_SLICE, 1)->at[0] = 4);
    REFUSED("[3:2:1] of dimension 1", list(S_SLICE, 0)->at[1] = 3);
    REFUSED("[0:3:0] of dimension 0", list(S_SLICE, 2)->at[0] = 0);
    REFUSED("[-1:3:2] of dimension 0", list(S_SLICE, 0)->at[0] = -1);
    REFUSED("expected f32[3,1]", list(S_SLICE, 2)->at[0] = 1);
    REFUSED("limit has 1 numbers; expected 2", list(S_SLICE, 1)->n = 1);
    REFUSED("interior padding -1", list(S_PAD, 2)->at[0] = -1);
    REFUSED("dimension 0 shrinks to -1", list(S_PAD, 0)->at[0] = -3);
    REFUSED("expected f32[4,3]", list(S_PAD, 0)->at[0] = 2);
    REFUSED("high has 1 numbers", list(S_PAD, 1)->n = 1);
    REFUSED("expected a scalar of f32", set_operand(S_PAD, 1, S_X));
}

static void sums_and_products_are_worked_out(void **state)
{
    (void)state;
    REFUSED("expected f32[4]", *list(S_REDUCE, 0) = LIST(0));
    REFUSED("dimensions has 2", *list(S_REDUCE, 0) = LIST(2));
    REFUSED("dimensions has 1 twice", *list(S_REDUCE, 0) = LIST(1, 1));
    REFUSED("the start is f32 of rank 2", set_operand(S_REDUCE, 1, S_X));
    REFUSED("dimension 0 of operand 0 is 2, 0 of operand 1 is 3",
            *list(S_DOT, 0) = LIST(0));
    REFUSED("contracting dimensions has 0 numbers; expected 1",
            list(S_DOT, 1)->n = 0);
    REFUSED("batch dimensions has 1 numbers; expected 0",
            *list(S_DOT, 3) = LIST(1));
    REFUSED("dimension 1 is both contracting and batch", {
        *list(S_DOT, 2) = LIST(1);
        *list(S_DOT, 3) = LIST(0);
    });
    REFUSED("contracting dimensions has 5", *list(S_DOT, 1) = LIST(5));
    REFUSED("expected f32[2,4]", inst(S_DOT)->shape.type = TRN__HLO_F64);
    REFUSED("not defined for f32 and f16",
            inst(S_W)->shape.type = TRN__HLO_F16);
}

static void gathers_are_worked_out(void **state)
{
    (void)state;
    REFUSED("the indices are f32", set_operand(S_GATHER, 1, S_X));
    REFUSED("index_vector_dim is 2", inst(S_GATHER)->number = 2);
    REFUSED("index_vector_dim is -1", inst(S_GATHER)->number = -1);
    REFUSED("start_index_map has 1 numbers; expected 2", {
        inst(S_GATHER)->number = 0;
        *list(S_GATHER, 0) = LIST(0);
    });
    REFUSED("start_index_map has 2", *list(S_GATHER, 2) = LIST(2));
    REFUSED("offset_dims has 0 numbers; expected 1", list(S_GATHER, 0)->n = 0);
    REFUSED("offset_dims has 2", *list(S_GATHER, 0) = LIST(2));
    REFUSED("collapsed_slice_dims falls", *list(S_GATHER, 1) = LIST(1, 0));
    REFUSED("slice_sizes has 5 for dimension 1, which is 4",
            *list(S_GATHER, 3) = LIST(1, 5));
    REFUSED("expected 1, as it is collapsed", *list(S_GATHER, 3) = LIST(2, 4));
    REFUSED("slice_sizes has 1 numbers", *list(S_GATHER, 3) = LIST(1));
    REFUSED("expected f32[2,3]", *list(S_GATHER, 3) = LIST(1, 3));
    REFUSED("the result has 11 dimensions",
            *list(S_GATHER, 0) = LIST(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

static void scatters_are_worked_out(void **state)
{
    (void)state;
    REFUSED("the indices are f32", set_operand(S_SCATTER, 1, S_X));
    REFUSED("the updates are f32; expected s32", {
        inst(S_SCATTER)->shape = SHAPE(S32, 2);
        set_operand(S_SCATTER, 0, S_I);
    });
    REFUSED("the updates have 2 dimensions; expected 1",
            list(S_SCATTER, 0)->n = 0);
    REFUSED("update_window_dims has 2", *list(S_SCATTER, 0) = LIST(2));
    REFUSED("scatter_dims_to_operand_dims has -1",
            *list(S_SCATTER, 2) = LIST(-1));
    REFUSED("inserted_window_dims has 2", *list(S_SCATTER, 1) = LIST(2));
    REFUSED("dimension 1 of the updates is 4; expected at most 3",
            *list(S_SCATTER, 1) = LIST(1));
    REFUSED("dimension 1 of the updates is 4; expected 2",
            *list(S_SCATTER, 0) = LIST(0));
    REFUSED("expected f32[3,4]", inst(S_SCATTER)->shape.dims[0] = 2);
}

/* ---- profiles ---- */

static void profiles_limit_opcodes_and_types(void **state)
{
    (void)state;
    REFUSED("opcode reshape is not in profile all",
            profile.ops &= ~(UINT64_C(1) << TRN__HLO_OP_RESHAPE));
    REFUSED("element type pred is not in profile all",
            profile.types &= ~(1u << TRN__HLO_PRED));
    REFUSED("opcode minimum is not in profile all", {
        w->helpers[0].op = TRN__HLO_OP_MINIMUM;
        profile.ops &= ~(UINT64_C(1) << TRN__HLO_OP_MINIMUM);
    });
    REFUSED("dot of s32 is not in profile all", {
        profile.integer_dot = false;
        inst(S_AND)->op = TRN__HLO_OP_DOT;
    });
}

static void profiles_limit_sums_of_integers_at_indices(void **state)
{
    (void)state;
    char message[256];
    profile = all_of_it;
    profile.integer_scatter = false;
    world_begin(w);
    const int32_t x = param(w, SHAPE(S32, 5)), i = param(w, SHAPE(S32, 2));
    const int32_t u = param(w, SHAPE(S32, 2));
    const int32_t s = PUT(w, SCATTER, SHAPE(S32, 5), x, i, u);
    *list(s, 1) = LIST(0);
    *list(s, 2) = LIST(0);
    inst(s)->number = 1;
    inst(s)->helper = helper(w, TRN__HLO_OP_ADD, TRN__HLO_S32);
    ROOT(w, s);
    refused("scatter with add of s32 is not in profile all");
    w->helpers[0].op = TRN__HLO_OP_COPY;
    assert_true(trn__hlo_verify(&w->m, &profile, message, sizeof message));
    world_is_sound(w);
}

/* Values of one type go on as those of another only where XLA has it so. */
static void halves_may_be_multiplied_into_singles(void **state)
{
    (void)state;
    world_begin(w);
    const int32_t a = param(w, SHAPE(BF16, 2, 3));
    const int32_t b = param(w, SHAPE(BF16, 3));
    const int32_t dot = PUT(w, DOT, SHAPE(F32, 2), a, b);
    *list(dot, 0) = LIST(1);
    *list(dot, 1) = LIST(0);
    ROOT(w, dot);
    world_is_sound(w);
    inst(dot)->shape.type = TRN__HLO_BF16;
    world_is_sound(w);
    inst(dot)->shape.type = TRN__HLO_F64;
    profile = all_of_it;
    refused("shape is f64[2]; expected bf16[2]");
}

static void ignore(void *user, const char *piece)
{
    (void)user;
    (void)piece;
}

static void write_all(void)
{
    size_t n = 0;
    trn__hlo_write_text(&w->m, ignore, NULL);
    world_dealloc(w, trn__hlo_encode(&w->m, &n));
}

static void noise_in_any_field_is_never_followed(void **state)
{
    (void)state;
    uint64_t random = 7;
    char message[64];
    profile = all_of_it;
    for (int round = 0; round < 5000; round++) {
        sample_begin(w);
        for (int k = 0; k < 3; k++) {
            trn__hlo_inst *at = inst((int32_t)(harness_random(&random) % 24));
            const size_t word =
                harness_random(&random) % (sizeof *at / sizeof(int32_t));
            const uint64_t bits = harness_random(&random);
            const int32_t noise = (int32_t)(bits >> 32 >> (bits % 32));
            memcpy((unsigned char *)at + word * sizeof noise, &noise,
                   sizeof noise);
        }
        if (trn__hlo_verify(&w->m, &profile, message, sizeof message))
            write_all();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sample_is_sound),
        cmocka_unit_test(structure_is_checked),
        cmocka_unit_test(operands_come_before_their_use),
        cmocka_unit_test(shapes_are_sound),
        cmocka_unit_test(parameters_have_each_number_once),
        cmocka_unit_test(aliases_join_equal_shapes_once),
        cmocka_unit_test(constants_fit_their_type),
        cmocka_unit_test(helpers_are_of_the_right_type),
        cmocka_unit_test(elementwise_shapes_are_worked_out),
        cmocka_unit_test(moved_shapes_are_worked_out),
        cmocka_unit_test(slices_and_padding_are_worked_out),
        cmocka_unit_test(sums_and_products_are_worked_out),
        cmocka_unit_test(gathers_are_worked_out),
        cmocka_unit_test(scatters_are_worked_out),
        cmocka_unit_test(profiles_limit_opcodes_and_types),
        cmocka_unit_test(profiles_limit_sums_of_integers_at_indices),
        cmocka_unit_test(halves_may_be_multiplied_into_singles),
        cmocka_unit_test(noise_in_any_field_is_never_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
