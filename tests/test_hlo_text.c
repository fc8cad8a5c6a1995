/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules as text.  What is expected follows from the published syntax of HLO.
 */
#include "hlo_sample.h"

static hlo_world world;

static char text[8192];

static void add_text(void *user, const char *piece)
{
    const size_t n = strlen(text), more = strlen(piece);
    (void)user;
    assert_true(n + more < sizeof text);
    memcpy(text + n, piece, more + 1);
}

static const char *text_of(const hlo_world *w)
{
    text[0] = '\0';
    trn__hlo_write_text(&w->m, add_text, NULL);
    return text;
}

static const char sample_text[] =
    "HloModule trn_step, input_output_alias={ {1}: (1, {}, may-alias), "
    "{2}: (0, {}, may-alias) }\n"
    "\n"
    "add_f32.1 {\n"
    "  a.1 = f32[] parameter(0)\n"
    "  b.2 = f32[] parameter(1)\n"
    "  ROOT add.3 = f32[] add(a.1, b.2)\n"
    "}\n"
    "\n"
    "copy_f32.2 {\n"
    "  a.4 = f32[] parameter(0)\n"
    "  b.5 = f32[] parameter(1)\n"
    "  ROOT copy.6 = f32[] copy(b.5)\n"
    "}\n"
    "\n"
    "ENTRY main {\n"
    "  param.0 = f32[2,3]{1,0} parameter(0)\n"
    "  param.1 = f32[3,4]{1,0} parameter(1)\n"
    "  param.2 = s32[2]{0} parameter(2)\n"
    "  constant.10 = f32[] constant(0.5)\n"
    "  dot.11 = f32[2,4]{1,0} dot(param.0, param.1), "
    "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "  broadcast.12 = f32[2,4]{1,0} broadcast(constant.10), dimensions={}\n"
    "  add.13 = f32[2,4]{1,0} add(dot.11, broadcast.12)\n"
    "  compare.14 = pred[2,4]{1,0} compare(add.13, broadcast.12), "
    "direction=GT\n"
    "  select.15 = f32[2,4]{1,0} select(compare.14, add.13, broadcast.12)\n"
    "  reduce.16 = f32[2]{0} reduce(select.15, constant.10), dimensions={1}, "
    "to_apply=add_f32.1\n"
    "  gather.17 = f32[2,4]{1,0} gather(param.1, param.2), offset_dims={1}, "
    "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
    "slice_sizes={1,4}\n"
    "  scatter.18 = f32[3,4]{1,0} scatter(param.1, param.2, gather.17), "
    "update_window_dims={1}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
    "to_apply=copy_f32.2\n"
    "  transpose.19 = f32[3,2]{1,0} transpose(param.0), dimensions={1,0}\n"
    "  slice.20 = f32[2,1]{1,0} slice(transpose.19), "
    "slice={[0:3:2], [1:2:1]}\n"
    "  pad.21 = f32[3,3]{1,0} pad(slice.20, constant.10), "
    "padding=1_-1_1x0_2_0\n"
    "  concatenate.22 = f32[5,3]{1,0} concatenate(param.0, pad.21), "
    "dimensions={0}\n"
    "  reshape.23 = f32[15]{0} reshape(concatenate.22)\n"
    "  iota.24 = s32[2,3]{1,0} iota(), iota_dimension=1\n"
    "  convert.25 = f32[2,3]{1,0} convert(iota.24)\n"
    "  negate.26 = f32[2,3]{1,0} negate(param.0)\n"
    "  and.27 = s32[2]{0} and(param.2, param.2)\n"
    "  shift-left.28 = s32[2]{0} shift-left(param.2, and.27)\n"
    "  copy.29 = f32[3,4]{1,0} copy(param.1)\n"
    "  ROOT tuple.30 = (f32[2]{0}, f32[3,4]{1,0}, f32[2,3]{1,0}, f32[15]{0}, "
    "f32[2,3]{1,0}, s32[2]{0}, f32[3,4]{1,0}) tuple(reduce.16, scatter.18, "
    "negate.26, reshape.23, convert.25, shift-left.28, copy.29)\n"
    "}\n";

static void text_is_hlo(void **state)
{
    (void)state;
    sample_begin(&world);
    world_is_sound(&world);
    assert_string_equal(text_of(&world), sample_text);
}

static void batches_of_a_dot_are_in_the_text(void **state)
{
    (void)state;
    world_begin(&world);
    const int32_t a = param(&world, SHAPE(F64, 5, 2, 3));
    const int32_t b = param(&world, SHAPE(F64, 3, 5));
    const int32_t dot = PUT(&world, DOT, SHAPE(F64, 5, 2), a, b);
    *sample_list(&world, dot, 0) = LIST(2);
    *sample_list(&world, dot, 1) = LIST(0);
    *sample_list(&world, dot, 2) = LIST(0);
    *sample_list(&world, dot, 3) = LIST(1);
    ROOT(&world, dot);
    world_is_sound(&world);
    assert_non_null(strstr(text_of(&world),
                           "lhs_batch_dims={0}, lhs_contracting_dims={2}, "
                           "rhs_batch_dims={1}, rhs_contracting_dims={0}\n"));
    assert_non_null(strstr(text, "HloModule trn_step\n\nENTRY main {\n"));
}

static void reversed_dimensions_are_in_the_text(void **state)
{
    (void)state;
    world_begin(&world);
    const int32_t x = param(&world, SHAPE(S32, 5, 2, 3));
    const int32_t y = PUT(&world, REVERSE, SHAPE(S32, 5, 2, 3), x);
    *sample_list(&world, y, 0) = LIST(0, 2);
    ROOT(&world, y);
    world_is_sound(&world);
    assert_non_null(
        strstr(text_of(&world), "reverse(param.0), dimensions={0,2}\n"));
}

static void literals_in_text_give_their_value_back(void **state)
{
    (void)state;
    static const struct {
        uint32_t type;
        uint64_t bits;
        const char *want;
    } cases[] = {
        {TRN__HLO_PRED, 1, "pred[] constant(true)"},
        {TRN__HLO_PRED, 0, "pred[] constant(false)"},
        {TRN__HLO_S32, 0xfffffff9, "s32[] constant(-7)"},
        {TRN__HLO_S64, UINT64_MAX, "s64[] constant(-1)"},
        {TRN__HLO_U64, UINT64_MAX, "u64[] constant(18446744073709551615)"},
        {TRN__HLO_F16, 0x2e66, "f16[] constant(0.099976)"},
        {TRN__HLO_F16, 0xc000, "f16[] constant(-2)"},
        {TRN__HLO_F16, 0x0001, "f16[] constant(5.9605e-08)"},
        {TRN__HLO_F16, 0x7c00, "f16[] constant(inf)"},
        {TRN__HLO_BF16, 0x3dcd, "bf16[] constant(0.1001)"},
        {TRN__HLO_F32, 0x3dcccccd, "f32[] constant(0.1)"},
        {TRN__HLO_F32, 0x3dccccce, "f32[] constant(0.10000001)"},
        {TRN__HLO_F32, 0x80000000, "f32[] constant(-0)"},
        {TRN__HLO_F32, 0xff800000, "f32[] constant(-inf)"},
        {TRN__HLO_F32, 0x7fc00000, "f32[] constant(nan)"},
        {TRN__HLO_F64, UINT64_C(0x3fb999999999999a), "f64[] constant(0.1)"},
        {TRN__HLO_F64, UINT64_C(0x3fb999999999999b),
         "f64[] constant(0.10000000000000002)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        world_begin(&world);
        ROOT(&world, constant(&world, cases[i].type, cases[i].bits));
        CHECK(strstr(text_of(&world), cases[i].want) != NULL, "%s\n%s\n",
              cases[i].want, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_hlo),
        cmocka_unit_test(batches_of_a_dot_are_in_the_text),
        cmocka_unit_test(reversed_dimensions_are_in_the_text),
        cmocka_unit_test(literals_in_text_give_their_value_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
