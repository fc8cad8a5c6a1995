/* SPDX-License-Identifier: Apache-2.0
 *
 * The blocked f32 and f64 matrix product on packed panels.
 *
 * k is cut at multiples of 256 as the numerics rule says; m and n are cut as
 * caches and threads like it, which changes no bit: an element of c is the sum
 * of its k-blocks in increasing order, whoever computes them.
 */
#include "backends/cpu/cpu_matmul.h"
#include "backends/cpu/cpu_workspace.h"

#define MC 96             /* rows of a packed at once: with KC half of L2 */
#define NC 1024           /* columns of b packed at once, */
#define K_SUPER (8 * 256) /* and places along k */
#define SERIAL_ROWS 24    /* rows of a packed by the serial product */
#define MAX_ROWS 16
#define MAX_WIDTH 32

/* Tiles of packed rows [0, m) against columns [0, n) over one k-block. */
static void multiply_panels(const trn__cpu_product *p, const char *a,
                            const char *b, int64_t i0, int64_t m, int64_t j0,
                            int64_t n, int64_t k, bool first)
{
    const trn__kernel_set *set = &p->dev->set;
    const bool f32 = p->c_dtype == TRN_F32;
    const int64_t size = f32 ? 4 : 8;
    const int mr = f32 ? set->mr_f32 : set->mr_f64;
    const int nr = f32 ? set->nr_f32 : set->nr_f64;
    for (int64_t j = 0; j < n; j += nr) {
        const int cols = (int)trn__i64_min(n - j, nr);
        for (int64_t i = 0; i < m; i += mr) {
            const int rows = (int)trn__i64_min(m - i, mr);
            const void *pa = a + i * k * size, *pb = b + j * k * size;
            void *c = p->c + ((i0 + i) * p->n + j0 + j) * size;
            if (f32)
                set->matmul_tile_f32(k, pa, pb, c, p->n, rows, cols, first);
            else
                set->matmul_tile_f64(k, pa, pb, c, p->n, rows, cols, first);
        }
    }
}

static int row_width(const trn__cpu_product *p)
{
    return p->c_dtype == TRN_F32 ? p->dev->set.mr_f32 : p->dev->set.mr_f64;
}

static int col_width(const trn__cpu_product *p)
{
    return p->c_dtype == TRN_F32 ? p->dev->set.nr_f32 : p->dev->set.nr_f64;
}

static int64_t round_up(int64_t n, int64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

void trn__cpu_multiply_serial(const trn__cpu_product *p)
{
    double a[TRN__CPU_KC_MOST * (SERIAL_ROWS + MAX_ROWS)];
    double b[TRN__CPU_KC_MOST * MAX_WIDTH / 2];
    const int mr = row_width(p), nr = col_width(p);
    const int64_t block = round_up(SERIAL_ROWS, mr);
    for (int64_t k0 = 0; k0 < p->k; k0 += TRN__CPU_KC) {
        const int64_t k = trn__i64_min(p->k - k0, TRN__CPU_KC);
        for (int64_t i = 0; i < p->m; i += block) {
            const int64_t rows = trn__i64_min(p->m - i, block);
            const trn__cpu_factor from_a = trn__cpu_factor_from(&p->a, i, k0);
            trn__cpu_pack(p->dev, &from_a, rows, k, mr, a);
            for (int64_t j = 0; j < p->n; j += nr) {
                const int64_t cols = trn__i64_min(p->n - j, nr);
                const trn__cpu_factor from_b =
                    trn__cpu_factor_from(&p->b, j, k0);
                trn__cpu_pack(p->dev, &from_b, cols, k, nr, b);
                multiply_panels(p, (const char *)a, (const char *)b, i, rows, j,
                                cols, k, k0 == 0);
            }
        }
    }
}

/* How one product is shared among threads. */
typedef struct shared {
    const trn__cpu_product *p;
    size_t size;
    int mr, nr;
    /* this round: columns [j0, j0 + n), places [k0, k0 + k) */
    int64_t j0, n, k0, k;
    int64_t col_panels;
    /* tasks: row blocks times slices of the columns */
    int64_t rows, slices, panels_per_slice, tasks, grain;
    size_t slot_bytes;
    size_t a_bytes, b_bytes; /* of what is packed at once */
    char *packed_a;          /* one slot per range of tasks */
    char *packed_b;          /* k-block after k-block, panel after panel */
} shared;

/* Tasks: k-blocks times column panels. */
static void pack_b_range(void *arg, int64_t begin, int64_t end)
{
    const shared *s = arg;
    for (int64_t t = begin; t < end; t++) {
        const int64_t at = t / s->col_panels * TRN__CPU_KC;
        const int64_t j = t % s->col_panels * s->nr;
        const int64_t k = trn__i64_min(s->k - at, TRN__CPU_KC);
        const trn__cpu_factor from =
            trn__cpu_factor_from(&s->p->b, s->j0 + j, s->k0 + at);
        char *to = s->packed_b +
                   (size_t)(at * s->col_panels * s->nr + j * k) * s->size;
        trn__cpu_pack(s->p->dev, &from, trn__i64_min(s->n - j, s->nr), k, s->nr,
                      to);
    }
}

static void multiply_range(void *arg, int64_t begin, int64_t end)
{
    const shared *s = arg;
    const trn__cpu_product *p = s->p;
    char *a = s->packed_a + (size_t)(begin / s->grain) * s->slot_bytes;
    for (int64_t t = begin; t < end; t++) {
        const int64_t i = t / s->slices * s->rows;
        const int64_t m = trn__i64_min(p->m - i, s->rows);
        const int64_t j = t % s->slices * s->panels_per_slice * s->nr;
        const int64_t n = trn__i64_min(s->n - j, s->panels_per_slice * s->nr);
        if (n <= 0)
            continue;
        for (int64_t at = 0; at < s->k; at += TRN__CPU_KC) {
            const int64_t k = trn__i64_min(s->k - at, TRN__CPU_KC);
            const trn__cpu_factor from =
                trn__cpu_factor_from(&p->a, i, s->k0 + at);
            const char *b =
                s->packed_b +
                (size_t)(at * s->col_panels * s->nr + j * k) * s->size;
            trn__cpu_pack(p->dev, &from, m, k, s->mr, a);
            multiply_panels(p, a, b, i, m, s->j0 + j, n, k, s->k0 + at == 0);
        }
    }
}

/* Row blocks and slices: at least two tasks a thread where there is work. */
static void cut(shared *s, int64_t threads)
{
    const trn__cpu_product *p = s->p;
    const int64_t want = threads == 1 ? 1 : 2 * threads;
    const int64_t n = trn__i64_min(p->n, NC);
    int64_t blocks = (p->m + MC - 1) / MC;
    if (blocks < want)
        blocks = trn__i64_min(want, (p->m + 4 * s->mr - 1) / (4 * s->mr));
    s->rows = round_up((p->m + blocks - 1) / blocks, s->mr);
    blocks = (p->m + s->rows - 1) / s->rows;
    const int64_t panels = (n + s->nr - 1) / s->nr;
    s->slices =
        blocks >= want ? 1 : trn__i64_min(panels, (want + blocks - 1) / blocks);
    s->panels_per_slice = (panels + s->slices - 1) / s->slices;
    s->tasks = blocks * s->slices;
    s->grain = (s->tasks + 4 * threads - 1) / (4 * threads);
    s->slot_bytes = (size_t)(s->rows * TRN__CPU_KC) * s->size;
}

static shared share(const trn__cpu_product *p)
{
    const trn_host_services *host = p->dev->host;
    shared s = {
        .p = p,
        .size = trn__cpu_size(p->c_dtype),
        .mr = row_width(p),
        .nr = col_width(p),
    };
    cut(&s, trn__i64_max(1, host->n_threads(host->host)));
    const int64_t slots = (s.tasks + s.grain - 1) / s.grain;
    const int64_t nc = round_up(trn__i64_min(p->n, NC), s.nr);
    const int64_t kc = trn__i64_min(p->k, K_SUPER);
    s.a_bytes = (size_t)slots * s.slot_bytes;
    s.b_bytes = (size_t)(nc * kc) * s.size;
    return s;
}

size_t trn__cpu_shared_bytes(const trn__cpu_product *p)
{
    const shared s = share(p);
    return s.a_bytes + s.b_bytes;
}

int32_t trn__cpu_multiply_shared(const trn__cpu_product *p)
{
    trn_device *dev = p->dev;
    shared s = share(p);
    char *work = trn__cpu_work_alloc(dev, s.a_bytes + s.b_bytes);
    if (work == NULL)
        return TRN_ERR_NOMEM;
    s.packed_a = work;
    s.packed_b = work + s.a_bytes;
    for (s.j0 = 0; s.j0 < p->n; s.j0 += NC) {
        s.n = trn__i64_min(p->n - s.j0, NC);
        s.col_panels = (s.n + s.nr - 1) / s.nr;
        for (s.k0 = 0; s.k0 < p->k; s.k0 += K_SUPER) {
            s.k = trn__i64_min(p->k - s.k0, K_SUPER);
            const int64_t k_blocks = (s.k + TRN__CPU_KC - 1) / TRN__CPU_KC;
            trn__cpu_for(dev, k_blocks * s.col_panels, 8, pack_b_range, &s);
            trn__cpu_for(dev, s.tasks, s.grain, multiply_range, &s);
        }
    }
    trn__cpu_work_free(dev, work);
    return TRN_OK;
}
