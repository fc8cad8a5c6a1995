/* SPDX-License-Identifier: Apache-2.0
 *
 * What an attempt to break the library found, as tests: each failed before its
 * fix.
 */
#include <fenv.h>
#include <math.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "captured.h"
#include "harness.h"

static void retain_then_keep_then_release_leaves_a_reference(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        trn_context *c = captured_open(way, NULL);
        float got[2] = {0, 0}, x[2] = {1, 2};
        trn_tensor *a = trn_tensor_from(c, TRN_F32, 1, (int64_t[]){2}, x);
        trn_step_begin(c);
        trn_tensor *t = trn_tensor_retain(trn_add(a, a));
        trn_keep(t);
        assert_int_equal(trn_step_end(c), TRN_OK);
        trn_tensor_release(t);
        assert_int_equal(trn_tensor_read(t, got, sizeof got), TRN_OK);
        assert_true(got[1] == 4);
        captured_close(c);
    }
}

static void an_optimizer_made_in_a_step_works_in_the_next(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        trn_context *c = captured_open(way, NULL);
        float x[3] = {1, 2, 3};
        trn_tensor *in = trn_tensor_from(c, TRN_F32, 2, (int64_t[]){1, 3}, x);
        trn_module *m = trn_nn_linear(c, 3, 2);
        trn_step_begin(c);
        trn_optim *o = trn_optim_adamw(m, NULL);
        assert_int_equal(trn_step_end(c), TRN_OK);
        for (int i = 0; i < 3; i++) {
            trn_step_begin(c);
            trn_backward(trn_sum(trn_nn_forward(m, in), TRN_ALL_AXES, false));
            trn_optim_step(o);
            assert_int_equal(trn_step_end(c), TRN_OK);
        }
        captured_close(c);
    }
}

/* By arithmetic, as fegetround() may look at another unit than the kernels. */
static bool rounds_as(int mode)
{
    volatile double one = 1.0, tiny = 0x1p-60;
    const bool up = one + tiny > 1.0, down = -one - tiny < -1.0;
    const bool less = one - tiny < 1.0;
    return up == (mode == FE_UPWARD) && down == (mode == FE_DOWNWARD) &&
           less == (mode == FE_DOWNWARD || mode == FE_TOWARDZERO);
}

static void host_arithmetic_keeps_its_bits_in_any_rounding_mode(void **state)
{
    (void)state;
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD,
                                FE_TOWARDZERO};
    char digest[4][65];
    for (int i = 0; i < 4; i++) {
        trn_context *c = captured_open(EAGER, NULL);
        fesetround(modes[i]);
        trn_nn_set_dtype(c, TRN_F64);
        trn_module *m = trn_nn_linear(c, 7, 5);
        trn_optim *o = trn_optim_adamw(m, NULL);
        trn_optim_set_schedule(o, trn_schedule_cosine(c, 11, 0.1));
        trn_tensor *x = trn_uniform(trn_generator_default(c), TRN_F64, 2,
                                    (int64_t[]){4, 7});
        for (int s = 0; s < 5; s++) {
            trn_step_begin(c);
            trn_tensor *y = trn_nn_forward(m, x);
            trn_backward(trn_mean(trn_mul(y, y), TRN_ALL_AXES, false));
            trn_optim_step(o);
            trn_step_end(c);
        }
        trn_status status = trn_digest(m, digest[i]);
        bool kept = rounds_as(modes[i]);
        fesetround(FE_TONEAREST);
        assert_int_equal(status, TRN_OK);
        assert_true(kept);
        assert_string_equal(digest[0], digest[i]);
        captured_close(c);
    }
}

static const int all_modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD,
                                FE_TOWARDZERO};

static void schedules_keep_their_bits_in_any_rounding_mode(void **state)
{
    trn_context *c = *state;
    trn_schedule *s = trn_schedule_cosine(c, 97, 0.1);
    trn_optim *o = trn_optim_adamw(trn_nn_linear(c, 2, 2), NULL);
    double factor[4][97], rate[4][97];
    for (int m = 0; m < 4; m++)
        for (int t = 0; t < 97; t++) {
            trn_optim_set_learning_rate(o, 0.1 + t / 7.0);
            trn_optim_set_schedule(o, trn_schedule_warmup(c, 3 + t, s));
            fesetround(all_modes[m]);
            factor[m][t] = trn_schedule_factor(s, t);
            rate[m][t] = trn_optim_learning_rate(o);
            fesetround(FE_TONEAREST);
        }
    harness_ok(c);
    for (int m = 1; m < 4; m++) {
        assert_memory_equal(factor[0], factor[m], sizeof factor[0]);
        assert_memory_equal(rate[0], rate[m], sizeof rate[0]);
    }
}

/* Not every part of a kernel runs on threads, which have their own modes: the
 * scalars of ops and the quotient of a mean do not. */
static void every_way_to_run_keeps_its_bits_in_any_mode(void **state)
{
    (void)state;
    enum { N = 7 };
    float x[N], y[4][N + 1];
    int32_t target[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i * i) / 7.0f;
        target[i] = 0;
    }
    for (int way = 0; way < N_WAYS; way++) {
        for (int m = 0; m < 4; m++) {
            trn_context *c = captured_open(way, NULL);
            trn_tensor *a = trn_tensor_from(c, TRN_F32, 1, (int64_t[]){N}, x);
            trn_tensor *t = harness_i32(c, 1, (int64_t[]){N}, target);
            fesetround(all_modes[m]);
            trn_step_begin(c);
            trn_tensor *sum = trn_keep(trn_add_scalar(a, 0.1));
            trn_tensor *two = trn_stack(
                2, (trn_tensor *[]){a, trn_mul_scalar(a, 1.0 / 3)}, 1);
            trn_tensor *loss = trn_keep(trn_cross_entropy(two, t, NULL));
            trn_status status = trn_step_end(c);
            trn_tensor_read(sum, y[m], N * sizeof x[0]);
            trn_tensor_read(loss, &y[m][N], sizeof x[0]);
            fesetround(FE_TONEAREST);
            assert_int_equal(status, TRN_OK);
            assert_memory_equal(y[0], y[m], sizeof y[0]);
            captured_close(c);
        }
    }
}

#ifdef __SSE__
static void a_subnormal_is_read_whatever_the_caller_flushes(void **state)
{
    const float tiny = 1e-40f;
    trn_tensor *x = trn_tensor_from(*state, TRN_F32, 0, NULL, &tiny);
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040u); /* FTZ, DAZ */
    double got = trn_tensor_item(x);
    _mm_setcsr(before);
    harness_ok(*state);
    assert_true(got > 0.0 && (float)got == tiny);
}
#endif

static void a_schedule_of_another_context_is_refused(void **state)
{
    trn_context *c = *state;
    trn_context *d = harness_open(NULL, 1, TRN_ENGINE_POOL);
    trn_schedule *s = trn_schedule_constant(d);
    trn_optim *o = trn_optim_adamw(trn_nn_linear(c, 2, 2), NULL);
    assert_int_equal(trn_optim_set_schedule(o, s), TRN_ERR_ARG);
    harness_error(c, TRN_ERR_ARG, "belongs to another context");
    assert_null(trn_schedule_warmup(c, 3, s));
    harness_error(c, TRN_ERR_ARG, "belongs to another context");
    harness_close(d);
}

/* One target outside of [0, 5) in the middle of a pass. */
static void a_bad_label_changes_nothing(void **state)
{
    (void)state;
    enum { N = 24, B = 4, IN = 3, C = 5 };
    float x[N * IN];
    int32_t y[N];
    uint64_t seed = 3;
    for (int i = 0; i < N * IN; i++)
        x[i] = (float)harness_uniform(&seed, -1, 1);
    for (int i = 0; i < N; i++)
        y[i] = i == 14 ? 17 : i % C; /* in batch 3 */
    for (int way = 0; way < N_WAYS; way++) {
        trn_context *c = captured_open(way, NULL);
        trn_loader_options order = TRN_LOADER_INIT;
        order.shuffle = false;
        trn_loader *data = trn_data_tensors(
            c, trn_tensor_from(c, TRN_F32, 2, (int64_t[]){N, IN}, x),
            trn_tensor_from(c, TRN_I32, 1, (int64_t[]){N}, y), B, &order);
        trn_module *m = trn_nn_sequential(c, trn_nn_linear(c, IN, 8),
                                          trn_nn_dropout(c, 0.3),
                                          trn_nn_linear(c, 8, C), NULL);
        trn_optim *o = trn_optim_adamw(m, NULL);
        trn_optim_set_schedule(o, trn_schedule_cosine(c, 9, 0.1));
        trn_batch b;
        char before[65], after[65];
        float moments[2][8 * IN];
        double rate = 0;
        while (trn_data_next(data, &b)) {
            if (b.index == 3) {
                trn_sync(c);
                trn_digest(m, before);
                rate = trn_optim_learning_rate(o);
                trn_tensor_read(trn_optim_state(o, 0, "m"), moments[0],
                                sizeof moments[0]);
            }
            trn_step_begin(c);
            trn_backward(trn_cross_entropy(trn_nn_forward(m, b.inputs),
                                           b.targets, NULL));
            trn_optim_step(o);
            trn_step_end(c);
            if (b.index == 3)
                trn_sync(c);
        }
        harness_error(c, TRN_ERR_INDEX, "index 17 at position 2");
        assert_int_equal(trn_step_index(c), 3);
        assert_int_equal(trn_optim_steps(o), 3);
        assert_true(trn_optim_learning_rate(o) == rate);
        trn_digest(m, after);
        assert_string_equal(before, after);
        trn_tensor_read(trn_optim_state(o, 0, "m"), moments[1],
                        sizeof moments[1]);
        assert_memory_equal(moments[0], moments[1], sizeof moments[0]);
        assert_int_equal(trn_data_next(data, &b), 1);
        assert_int_equal(b.index, 3); /* the same batch again */
        captured_close(c);
    }
}

/* The batch of a step that could not begin is handed out again. */
static void a_batch_is_not_lost_when_its_step_cannot_begin(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = trn_full(c, TRN_F32, 1, (int64_t[]){6}, 1);
    trn_loader *data = trn_data_tensors(c, x, x, 2, NULL);
    trn_batch b;
    assert_int_equal(trn_data_next(data, &b), 1);
    trn_memory_trim(c);
    harness_fail_after(0);
    trn_status status = trn_step_begin(c);
    harness_fail_after(-1);
    assert_int_equal(status, TRN_ERR_NOMEM);
    trn_clear(c);
    assert_int_equal(trn_data_next(data, &b), 1);
    assert_int_equal(b.index, 0);
}

/* reshape of a transposed tensor copies; the copy is nobody else's. */
static void a_reshaped_copy_can_be_written(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        trn_context *c = captured_open(way, NULL);
        float x[6] = {1, 2, 3, 4, 5, 6}, got[6];
        trn_tensor *p = trn_tensor_from(c, TRN_F32, 2, (int64_t[]){2, 3}, x);
        trn_tensor *b = trn_tensor_from(c, TRN_F32, 1, (int64_t[]){6}, x);
        trn_set_requires_grad(p, true);
        for (int step = 0; step < 2; step++) { /* recorded, then matched */
            trn_step_begin(c);
            trn_tensor *y =
                trn_reshape(trn_transpose(p, 0, 1), 1, (int64_t[]){6});
            assert_int_equal(trn_assign(y, b), TRN_OK);
            trn_keep(y);
            assert_int_equal(trn_step_end(c), TRN_OK);
            assert_int_equal(trn_tensor_read(y, got, sizeof got), TRN_OK);
            assert_memory_equal(got, x, sizeof x);
        }
        captured_close(c);
    }
}

static void an_integer_scalar_wraps(void **state)
{
    trn_context *c = *state;
    uint8_t x[3] = {5, 200, 255};
    uint32_t y[2] = {7, 0};
    trn_tensor *a = trn_tensor_from(c, TRN_U8, 1, (int64_t[]){3}, x);
    trn_tensor *b = trn_tensor_from(c, TRN_U32, 1, (int64_t[]){2}, y);
    harness_equal(trn_add_scalar(a, -1), 3, 4.0, 199.0, 254.0);
    harness_equal(trn_add_scalar(b, -1), 2, 6.0, 4294967295.0);
}

static void null_results_are_survived(void **state)
{
    trn_context *c = *state;
    char out[65];
    trn_sha256("x", 1, NULL);
    trn_sha256(NULL, 5, out);
    assert_string_equal(out, "");
    assert_null(trn_tensor_describe(trn_full(c, TRN_F32, 0, NULL, 1), NULL, 9));
    assert_null(trn_tensor_scalar(c, TRN_I32, 1));
    harness_error(c, TRN_ERR_DTYPE, "expected a float type");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(retain_then_keep_then_release_leaves_a_reference),
        TRN_TEST(an_optimizer_made_in_a_step_works_in_the_next),
        TRN_TEST(host_arithmetic_keeps_its_bits_in_any_rounding_mode),
        TRN_TEST(schedules_keep_their_bits_in_any_rounding_mode),
        TRN_TEST(every_way_to_run_keeps_its_bits_in_any_mode),
#ifdef __SSE__
        TRN_TEST(a_subnormal_is_read_whatever_the_caller_flushes),
#endif
        TRN_TEST(a_schedule_of_another_context_is_refused),
        TRN_TEST(a_bad_label_changes_nothing),
        TRN_TEST(a_batch_is_not_lost_when_its_step_cannot_begin),
        TRN_TEST(a_reshaped_copy_can_be_written),
        TRN_TEST(an_integer_scalar_wraps),
        TRN_TEST(null_results_are_survived),
    };
    return cmocka_run_group_tests_name("breakage", tests, NULL, NULL);
}
