/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector layer of vec_generic.h (which says what each function means) on
 * AVX2+FMA: 8 lanes of f32, 4 of f64.  vi and vl are the same 256-bit integer
 * type; the prefix of a function says which lanes it works on.
 */
#ifndef TRN_KERNELS_VEC_AVX2_H
#define TRN_KERNELS_VEC_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef __m256 vf;
typedef __m256i vi;
typedef __m256d vd;
typedef __m256i vl;

#define VF_LANES 8
#define VD_LANES 4

#define VF_IN_F64(op, a, b)                         \
    vf_narrow(op(vd_widen_low(a), vd_widen_low(b)), \
              op(vd_widen_high(a), vd_widen_high(b)))
#define VF_IN_F64_UNARY(op, a) \
    vf_narrow(op(vd_widen_low(a)), op(vd_widen_high(a)))

/* ---- f32 ---- */
static inline vf vf_set(float x)
{
    return _mm256_set1_ps(x);
}
static inline vf vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
static inline void vf_store(float *p, vf x)
{
    _mm256_storeu_ps(p, x);
}
static inline __m256i vf_tail_mask(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vf vf_load_tail(const float *p, int64_t n)
{
    return _mm256_maskload_ps(p, vf_tail_mask(n));
}
static inline void vf_store_tail(float *p, int64_t n, vf x)
{
    _mm256_maskstore_ps(p, vf_tail_mask(n), x);
}
static inline void vi_store_bool(uint8_t *p, int64_t n, vi m)
{
    __m256i ones = _mm256_and_si256(m, _mm256_set1_epi32(1));
    __m128i h = _mm_packs_epi32(_mm256_castsi256_si128(ones),
                                _mm256_extracti128_si256(ones, 1));
    uint64_t bytes = (uint64_t)_mm_cvtsi128_si64(_mm_packus_epi16(h, h));
    if (n == 8)
        memcpy(p, &bytes, 8);
    else
        for (int64_t i = 0; i < n; i++)
            p[i] = (uint8_t)(bytes >> (8 * i));
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
static inline vf vf_sqrt(vf x)
{
    return _mm256_sqrt_ps(x);
}
static inline vi vf_bits(vf x)
{
    return _mm256_castps_si256(x);
}
static inline vf vf_from_bits(vi x)
{
    return _mm256_castsi256_ps(x);
}
static inline vi vf_lt(vf a, vf b)
{
    return vf_bits(_mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
static inline vi vf_le(vf a, vf b)
{
    return vf_bits(_mm256_cmp_ps(a, b, _CMP_LE_OQ));
}
static inline vi vf_eq(vf a, vf b)
{
    return vf_bits(_mm256_cmp_ps(a, b, _CMP_EQ_OQ));
}
static inline vf vf_select(vi m, vf a, vf b)
{
    return _mm256_blendv_ps(b, a, vf_from_bits(m));
}
static inline vi vi_set(uint32_t x)
{
    return _mm256_set1_epi32((int)x);
}
static inline vi vi_add(vi a, vi b)
{
    return _mm256_add_epi32(a, b);
}
static inline vi vi_sub(vi a, vi b)
{
    return _mm256_sub_epi32(a, b);
}
static inline vi vi_and(vi a, vi b)
{
    return _mm256_and_si256(a, b);
}
static inline vi vi_or(vi a, vi b)
{
    return _mm256_or_si256(a, b);
}
static inline vi vi_xor(vi a, vi b)
{
    return _mm256_xor_si256(a, b);
}
static inline vi vi_shl(vi a, int n)
{
    return _mm256_slli_epi32(a, n);
}
static inline vi vi_shr(vi a, int n)
{
    return _mm256_srli_epi32(a, n);
}

/* ---- f64 ---- */
static inline vd vd_set(double x)
{
    return _mm256_set1_pd(x);
}
static inline vd vd_load(const double *p)
{
    return _mm256_loadu_pd(p);
}
static inline void vd_store(double *p, vd x)
{
    _mm256_storeu_pd(p, x);
}
static inline __m256i vd_tail_mask(int64_t n)
{
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n),
                              _mm256_setr_epi64x(0, 1, 2, 3));
}
static inline vd vd_load_tail(const double *p, int64_t n)
{
    return _mm256_maskload_pd(p, vd_tail_mask(n));
}
static inline void vd_store_tail(double *p, int64_t n, vd x)
{
    _mm256_maskstore_pd(p, vd_tail_mask(n), x);
}
static inline void vl_store_bool(uint8_t *p, int64_t n, vl m)
{
    int bits = _mm256_movemask_pd(_mm256_castsi256_pd(m));
    for (int64_t i = 0; i < n; i++)
        p[i] = (uint8_t)((bits >> i) & 1);
}
static inline vd vd_fma(vd a, vd b, vd c)
{
    return _mm256_fmadd_pd(a, b, c);
}
static inline vd vd_sqrt(vd x)
{
    return _mm256_sqrt_pd(x);
}
static inline vl vd_bits(vd x)
{
    return _mm256_castpd_si256(x);
}
static inline vd vd_from_bits(vl x)
{
    return _mm256_castsi256_pd(x);
}
static inline vl vd_lt(vd a, vd b)
{
    return vd_bits(_mm256_cmp_pd(a, b, _CMP_LT_OQ));
}
static inline vl vd_le(vd a, vd b)
{
    return vd_bits(_mm256_cmp_pd(a, b, _CMP_LE_OQ));
}
static inline vl vd_eq(vd a, vd b)
{
    return vd_bits(_mm256_cmp_pd(a, b, _CMP_EQ_OQ));
}
static inline vd vd_select(vl m, vd a, vd b)
{
    return _mm256_blendv_pd(b, a, vd_from_bits(m));
}
static inline vl vl_set(uint64_t x)
{
    return _mm256_set1_epi64x((long long)x);
}
static inline vl vl_add(vl a, vl b)
{
    return _mm256_add_epi64(a, b);
}
static inline vl vl_sub(vl a, vl b)
{
    return _mm256_sub_epi64(a, b);
}
static inline vl vl_and(vl a, vl b)
{
    return _mm256_and_si256(a, b);
}
static inline vl vl_or(vl a, vl b)
{
    return _mm256_or_si256(a, b);
}
static inline vl vl_xor(vl a, vl b)
{
    return _mm256_xor_si256(a, b);
}
static inline vl vl_shl(vl a, int n)
{
    return _mm256_slli_epi64(a, n);
}
static inline vl vl_shr(vl a, int n)
{
    return _mm256_srli_epi64(a, n);
}
static inline bool vl_any(vl m)
{
    return !_mm256_testz_si256(m, m);
}
static inline vd vd_lookup(const double *table, vl index)
{
    return _mm256_i64gather_pd(table, index, 8);
}

/* ---- between them ---- */
static inline vd vd_widen_low(vf x)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}
static inline vd vd_widen_high(vf x)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}
static inline vf vf_narrow(vd low, vd high)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(low)),
                                _mm256_cvtpd_ps(high), 1);
}

#endif
