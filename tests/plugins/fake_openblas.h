/* SPDX-License-Identifier: Apache-2.0
 *
 * A library that looks like OpenBLAS, multiplies in plain loops, and notes who
 * called it and how many threads it would have used.
 *
 * FAKE_CONFIG and FAKE_PARALLEL say what build of OpenBLAS it is.
 */
#ifndef TRN_TESTS_FAKE_OPENBLAS_H
#define TRN_TESTS_FAKE_OPENBLAS_H

#include <stdatomic.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

/* What it noted since it was asked last. */
typedef struct fake_openblas_notes {
    int calls, at_once; /* the most calls that ran at the same time */
    int least_threads, most_threads;
} fake_openblas_notes;

char *openblas_get_config(void);
char *openblas_get_corename(void);
int openblas_get_parallel(void);
int openblas_get_num_threads(void);
void openblas_set_num_threads(int n);
void cblas_sgemm(int order, int turn_a, int turn_b, int m, int n, int k,
                 float alpha, const float *a, int step_a, const float *b,
                 int step_b, float beta, float *c, int step_c);
void cblas_dgemm(int order, int turn_a, int turn_b, int m, int n, int k,
                 double alpha, const double *a, int step_a, const double *b,
                 int step_b, double beta, double *c, int step_c);
void fake_openblas_ask(fake_openblas_notes *out);

static atomic_int threads = 4, running, calls, at_once;
static atomic_int least_threads = 9999, most_threads;

EXPORT char *openblas_get_config(void)
{
    static char text[] = FAKE_CONFIG;
    return text;
}

EXPORT char *openblas_get_corename(void)
{
    static char text[] = "Paper";
    return text;
}

EXPORT int openblas_get_parallel(void)
{
    return FAKE_PARALLEL;
}

EXPORT int openblas_get_num_threads(void)
{
    return atomic_load(&threads);
}

EXPORT void openblas_set_num_threads(int n)
{
    atomic_store(&threads, n);
}

static void raise_to(atomic_int *most, int value)
{
    int before = atomic_load(most);
    while (before < value &&
           !atomic_compare_exchange_weak(most, &before, value)) {
    }
}

static void lower_to(atomic_int *least, int value)
{
    int before = atomic_load(least);
    while (before > value &&
           !atomic_compare_exchange_weak(least, &before, value)) {
    }
}

/* Long enough for another call to come in, were it allowed. */
static void begin(void)
{
    const struct timespec pause = {0, 500000};
    const int now = atomic_load(&threads);
    atomic_fetch_add(&calls, 1);
    raise_to(&at_once, atomic_fetch_add(&running, 1) + 1);
    raise_to(&most_threads, now);
    lower_to(&least_threads, now);
    nanosleep(&pause, NULL);
}

static void end(void)
{
    atomic_fetch_sub(&running, 1);
}

#define MULTIPLY()                                                           \
    begin();                                                                 \
    for (int i = 0; order == 101 && i < m; i++) {                            \
        for (int j = 0; j < n; j++) {                                        \
            double sum = 0;                                                  \
            for (int p = 0; p < k; p++)                                      \
                sum +=                                                       \
                    (double)                                                 \
                        a[turn_a == 112 ? p * step_a + i : i * step_a + p] * \
                    (double)                                                 \
                        b[turn_b == 112 ? j * step_b + p : p * step_b + j];  \
            c[i * step_c + j] = alpha * (FLOAT)sum +                         \
                                (beta != 0 ? beta * c[i * step_c + j] : 0);  \
        }                                                                    \
    }                                                                        \
    end()

#define FLOAT float
EXPORT void cblas_sgemm(int order, int turn_a, int turn_b, int m, int n, int k,
                        float alpha, const float *a, int step_a, const float *b,
                        int step_b, float beta, float *c, int step_c)
{
    MULTIPLY();
}
#undef FLOAT

#define FLOAT double
EXPORT void cblas_dgemm(int order, int turn_a, int turn_b, int m, int n, int k,
                        double alpha, const double *a, int step_a,
                        const double *b, int step_b, double beta, double *c,
                        int step_c)
{
    MULTIPLY();
}
#undef FLOAT

EXPORT void fake_openblas_ask(fake_openblas_notes *out)
{
    out->calls = atomic_exchange(&calls, 0);
    out->at_once = atomic_exchange(&at_once, 0);
    out->least_threads = atomic_exchange(&least_threads, 9999);
    out->most_threads = atomic_exchange(&most_threads, 0);
}

#endif
