/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of HLO text finds each thing that the Neuron compiler does not
 * take, in modules made by hand.
 */
#include <stdio.h>

#include "tests/xla/xla_child.h"
#include "tests/xla/xla_neuron.h"

#define ADD                              \
    "add.1 {\n"                          \
    "  a.1 = f32[] parameter(0)\n"       \
    "  b.1 = f32[] parameter(1)\n"       \
    "  ROOT c.1 = f32[] add(a.1, b.1)\n" \
    "}\n\n"
#define HEAD "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n\n"

static void expect(const char *body, const char *fault)
{
    char text[2000], why[600];
    snprintf(text, sizeof text, HEAD ADD "ENTRY main {\n%s}\n", body);
    bool good = xla_neuron_takes(text, why, sizeof why);
    if (fault == NULL)
        CHECK(good, "%s\n", why);
    else
        CHECK(!good && strstr(why, fault) != NULL,
              "found \"%s\", expected \"%s\"\n", good ? "nothing" : why, fault);
}

#define X "  x = f32[4,3]{1,0} parameter(0)\n"
#define ROOT(name) "  ROOT t = (f32[4]{0}) tuple(" name ")\n"

static void a_good_module_is_taken(void **state)
{
    (void)state;
    expect(X "  zero = f32[] constant(0)\n"
             "  r = f32[4]{0} reduce(x, zero), dimensions={1}, to_apply=add.1\n"
             "  y = f32[2,3]{1,0} slice(x), slice={[0:2:1], [0:3:1]}\n"
             "  i = s32[5]{0} parameter(1)\n"
             "  g = f32[5,3]{1,0} gather(x, i), offset_dims={1}, "
             "collapsed_slice_dims={0}, start_index_map={0}, "
             "index_vector_dim=1, slice_sizes={1,3}\n"
             "  u = f32[5,3]{1,0} parameter(2)\n"
             "  s = f32[4,3]{1,0} scatter(x, i, u), update_window_dims={1}, "
             "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
             "index_vector_dim=1, to_apply=add.1\n" ROOT("r"),
           NULL);
}

static void opcodes_outside_of_the_list_are_found(void **state)
{
    (void)state;
    expect(X "  y = f32[4,3]{1,0} rsqrt(x)\n" ROOT("y"), "the opcode rsqrt");
    expect(X "  y = u32[4]{0} shift-left(x, x)\n" ROOT("y"),
           "the opcode shift-left");
    expect(X "  y = f32[4]{0} while(x), body=add.1\n" ROOT("y"),
           "the opcode while");
    expect(X "  y = f32[4]{0} custom-call(x), custom_call_target=\"f\"\n",
           "the opcode custom-call");
}

static void types_and_layouts_are_found(void **state)
{
    (void)state;
    expect("  x = f64[4]{0} parameter(0)\n", "the type f64");
    expect("  x = s64[] constant(1)\n", "the type s64");
    expect("  ROOT t = (f32[4]{0}, u64[2]{0}) tuple(a, b)\n", "the type u64");
    expect("  x = f32[4,3]{0,1} parameter(0)\n", "not row-major");
    expect("  x = f32[4,0]{1,0} parameter(0)\n", "without elements");
}

static void reduces_are_checked(void **state)
{
    (void)state;
    expect(X "  z = f32[] parameter(1)\n"
             "  r = f32[4]{0} reduce(x, z), dimensions={1}, to_apply=add.1\n",
           "start is no constant");
    expect(X "  z = f32[] constant(0)\n"
             "  r = f32[4]{0} reduce(x, z), dimensions={1}, to_apply=or.1\n",
           "another computation");
    expect(X "  z = f32[] constant(0)\n"
             "  r = (f32[4]{0}, f32[4]{0}) reduce(x, x, z, z), "
             "dimensions={1}, to_apply=add.1\n",
           "several arrays");
}

static void indexed_moves_are_checked(void **state)
{
    (void)state;
    expect(X "  i = s32[5]{0} parameter(1)\n"
             "  g = f32[5,1,3]{2,1,0} gather(x, i), offset_dims={1,2}, "
             "collapsed_slice_dims={}, start_index_map={0}, "
             "index_vector_dim=1, slice_sizes={1,3}\n",
           "indexed dimension 0 is a window");
    expect("  x = s32[4]{0} parameter(0)\n"
           "  s = s32[4]{0} scatter(x, x, x), update_window_dims={}, "
           "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
           "index_vector_dim=1, to_apply=add.1\n",
           "adds no floats");
    expect(X "  s = f32[4]{0} scatter(x, x, x), update_window_dims={}, "
             "inserted_window_dims={0}, to_apply=max.1\n",
           "neither assigns nor adds");
}

static void products_and_powers_are_checked(void **state)
{
    (void)state;
    expect("  x = s32[4,4]{1,0} parameter(0)\n"
           "  d = s32[4,4]{1,0} dot(x, x), lhs_contracting_dims={1}, "
           "rhs_contracting_dims={0}\n",
           "a dot of other than floats");
    expect(X "  p = f32[4,3]{1,0} power(x, x)\n", "exponent is no constant");
    expect(X "  e = f32[] constant(0.5)\n"
             "  b = f32[4,3]{1,0} broadcast(e), dimensions={}\n"
             "  p = f32[4,3]{1,0} power(x, b)\n",
           "no whole number");
    expect(X "  e = f32[] constant(2)\n"
             "  b = f32[4,3]{1,0} broadcast(e), dimensions={}\n"
             "  p = f32[4,3]{1,0} power(x, b)\n",
           NULL);
}

static void what_is_no_module_is_refused(void **state)
{
    char why[600];
    (void)state;
    assert_false(xla_neuron_takes("", why, sizeof why));
    expect("  x is nothing\n", "no instruction");
}

int main(int argc, char **argv)
{
    static const xla_test tests[] = {
        XLA_TEST_ANYWHERE(a_good_module_is_taken),
        XLA_TEST_ANYWHERE(opcodes_outside_of_the_list_are_found),
        XLA_TEST_ANYWHERE(types_and_layouts_are_found),
        XLA_TEST_ANYWHERE(reduces_are_checked),
        XLA_TEST_ANYWHERE(indexed_moves_are_checked),
        XLA_TEST_ANYWHERE(products_and_powers_are_checked),
        XLA_TEST_ANYWHERE(what_is_no_module_is_refused),
    };
    return xla_main(argc, argv, (int)(sizeof tests / sizeof tests[0]), tests);
}
