/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of one integer type.  No include guard: generic_integer.c includes
 * this once per type, with defined
 *
 *   INT         the type
 *   WORD        an unsigned type at least as wide as INT and as int: arithmetic
 *               in it wraps by definition, and the cast back keeps the low bits
 *   IS_SIGNED   0 or 1
 *   TYPED(name) name with the type's suffix
 */

static void TYPED(neg)(int64_t n, const void *vx, void *vy)
{
    const INT *x = vx;
    INT *y = vy;
    for (int64_t i = 0; i < n; i++)
        y[i] = (INT)(0u - (WORD)x[i]);
}

static void TYPED(relu)(int64_t n, const void *vx, void *vy)
{
    const INT *x = vx;
    INT *y = vy;
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] > 0 ? x[i] : 0;
}

static void TYPED(abs)(int64_t n, const void *vx, void *vy)
{
    const INT *x = vx;
    INT *y = vy;
    for (int64_t i = 0; i < n; i++)
        y[i] = IS_SIGNED && x[i] < (INT)1 ? (INT)(0u - (WORD)x[i]) : x[i];
}

static void TYPED(sign)(int64_t n, const void *vx, void *vy)
{
    const INT *x = vx;
    INT *y = vy;
    for (int64_t i = 0; i < n; i++)
        y[i] = (INT)((x[i] > 0) - (IS_SIGNED && x[i] < (INT)1 && x[i] != 0));
}

static void TYPED(add)(int64_t n, const void *va, const void *vb, void *vy)
{
    const INT *a = va;
    const INT *b = vb;
    INT *y = vy;
    for (int64_t i = 0; i < n; i++)
        y[i] = (INT)((WORD)a[i] + (WORD)b[i]);
}

static void TYPED(sub)(int64_t n, const void *va, const void *vb, void *vy)
{
    const INT *a = va;
    const INT *b = vb;
    INT *y = vy;
    for (int64_t i = 0; i < n; i++)
        y[i] = (INT)((WORD)a[i] - (WORD)b[i]);
}

static void TYPED(mul)(int64_t n, const void *va, const void *vb, void *vy)
{
    const INT *a = va;
    const INT *b = vb;
    INT *y = vy;
    for (int64_t i = 0; i < n; i++)
        y[i] = (INT)((WORD)a[i] * (WORD)b[i]);
}

static void TYPED(maximum)(int64_t n, const void *va, const void *vb, void *vy)
{
    const INT *a = va;
    const INT *b = vb;
    INT *y = vy;
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] > b[i] ? a[i] : b[i];
}

static void TYPED(minimum)(int64_t n, const void *va, const void *vb, void *vy)
{
    const INT *a = va;
    const INT *b = vb;
    INT *y = vy;
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] < b[i] ? a[i] : b[i];
}

static void TYPED(greater)(int64_t n, const void *va, const void *vb, void *vy)
{
    const INT *a = va;
    const INT *b = vb;
    uint8_t *y = vy;
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] > b[i];
}

static void TYPED(equal)(int64_t n, const void *va, const void *vb, void *vy)
{
    const INT *a = va;
    const INT *b = vb;
    uint8_t *y = vy;
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] == b[i];
}

static void TYPED(less)(int64_t n, const void *va, const void *vb, void *vy)
{
    const INT *a = va;
    const INT *b = vb;
    uint8_t *y = vy;
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] < b[i];
}

static void TYPED(less_equal)(int64_t n, const void *va, const void *vb,
                              void *vy)
{
    const INT *a = va;
    const INT *b = vb;
    uint8_t *y = vy;
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] <= b[i];
}

static void TYPED(greater_equal)(int64_t n, const void *va, const void *vb,
                                 void *vy)
{
    const INT *a = va;
    const INT *b = vb;
    uint8_t *y = vy;
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] >= b[i];
}

static void TYPED(not_equal)(int64_t n, const void *va, const void *vb,
                             void *vy)
{
    const INT *a = va;
    const INT *b = vb;
    uint8_t *y = vy;
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] != b[i];
}

static int64_t TYPED(div)(int64_t n, const void *va, const void *vb, void *vy)
{
    const INT *a = va;
    const INT *b = vb;
    INT *y = vy;
    for (int64_t i = 0; i < n; i++) {
        if (b[i] == 0)
            return i;
        /* The machine's division traps on smallest / -1. */
        if (IS_SIGNED && b[i] == (INT)-1)
            y[i] = (INT)(0u - (WORD)a[i]);
        else
            y[i] = (INT)(a[i] / b[i]);
    }
    return -1;
}

static const trn__integer_kernels TYPED(kernels) = {
    .neg = TYPED(neg),
    .relu = TYPED(relu),
    .abs = TYPED(abs),
    .sign = TYPED(sign),
    .add = TYPED(add),
    .sub = TYPED(sub),
    .mul = TYPED(mul),
    .maximum = TYPED(maximum),
    .minimum = TYPED(minimum),
    .greater = TYPED(greater),
    .equal = TYPED(equal),
    .less = TYPED(less),
    .less_equal = TYPED(less_equal),
    .greater_equal = TYPED(greater_equal),
    .not_equal = TYPED(not_equal),
    .div = TYPED(div),
};

#undef INT
#undef WORD
#undef IS_SIGNED
#undef TYPED
