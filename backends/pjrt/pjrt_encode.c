/* SPDX-License-Identifier: Apache-2.0
 *
 * The compiler's options as the bytes of a CompileOptionsProto.
 *
 * A plug-in ends the process when the counts of replicas and partitions are
 * missing, so the bytes are read again before they are handed over.  Fields:
 *
 *   3  build options {4: replicas, 5: partitions}   one of each
 *   4  portable: the device is named with each execution
 *   7  option of the compiler, as an entry of a map {1: name, 2: value}, and a
 *      value is {1: string} or {2: bool} or {3: int64} or {4: double}
 */
#include <string.h>

#include "backends/pjrt/pjrt.h"

static const char build_options[] = {0x1a, 4, 0x20, 1, 0x28, 1};
static const char portable_field[] = {0x20, 1};

enum { TAG_OPTION = 0x3a, TAG_NAME = 0x0a, TAG_VALUE = 0x12 };

/* Bytes that are only counted while `at` is NULL. */
typedef struct writer {
    char *at;
    size_t n;
} writer;

static void put(writer *w, const void *bytes, size_t n)
{
    if (w->at != NULL && n > 0)
        memcpy(w->at + w->n, bytes, n);
    w->n += n;
}

/* Seven bits a byte, the lowest first. */
static void put_number(writer *w, uint64_t v)
{
    do {
        char byte = (char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        put(w, &byte, 1);
        v >>= 7;
    } while (v != 0);
}

static void put_text(writer *w, uint64_t tag, const char *text, size_t n)
{
    put_number(w, tag);
    put_number(w, n);
    put(w, text, n);
}

static void put_value(writer *w, const trn__pjrt_option *o)
{
    uint64_t bits;
    char little[8];
    switch ((pjrt_value_kind)o->kind) {
    case PJRT_BOOL:
        put_number(w, 0x10);
        put_number(w, o->truth);
        return;
    case PJRT_INT64:
        put_number(w, 0x18);
        put_number(w, (uint64_t)o->integer);
        return;
    case PJRT_FLOAT:
        memcpy(&bits, &o->real, sizeof bits);
        for (int i = 0; i < 8; i++)
            little[i] = (char)((bits >> (8 * i)) & 0xff);
        put_number(w, 0x21);
        put(w, little, sizeof little);
        return;
    case PJRT_STRING:
        put_text(w, 0x0a, o->text, o->n_text);
        return;
    }
}

static void put_option(writer *w, const trn__pjrt_option *o)
{
    writer value = {.n = 0}, entry = {.n = 0};
    put_value(&value, o);
    put_text(&entry, TAG_NAME, o->name, o->n_name);
    put_number(&entry, TAG_VALUE);
    put_number(&entry, value.n);
    put_number(w, TAG_OPTION);
    put_number(w, entry.n + value.n);
    put_text(w, TAG_NAME, o->name, o->n_name);
    put_number(w, TAG_VALUE);
    put_number(w, value.n);
    put_value(w, o);
}

/*
 * What the CPU's compiler does by default and must not here: a minimum that
 * loses NaN; intermediate results of more than their type's precision.  Of the
 * kernels of YNNPACK, products and reductions, which are much faster than XLA's
 * own: with all of them some products of bf16 are left that nobody can run, and
 * its products are wrong where a factor is a broadcast, so they serve modules
 * alone that have none of these.  That a maximum over 4096 elements and more
 * loses NaN there is known to hlo_lower_sums.c.  Another version may not have
 * an option, and then not what it is against.
 */
#define YNN "LIBRARY_FUSION_TYPE_REDUCE"
#define YNN_PLAIN "LIBRARY_FUSION_TYPE_DOT,LIBRARY_FUSION_TYPE_REDUCE"
#define YNN_NAME "xla_cpu_experimental_ynn_fusion_type"
static const trn__pjrt_option cpu_defaults[] = {
    {
        .name = "xla_cpu_enable_fast_min_max",
        .n_name = sizeof "xla_cpu_enable_fast_min_max" - 1,
        .kind = PJRT_BOOL,
    },
    {
        .name = "xla_allow_excess_precision",
        .n_name = sizeof "xla_allow_excess_precision" - 1,
        .kind = PJRT_BOOL,
    },
    {
        .name = YNN_NAME,
        .n_name = sizeof YNN_NAME - 1,
        .kind = PJRT_STRING,
        .text = YNN,
        .n_text = sizeof YNN - 1,
    },
    {
        .name = YNN_NAME, /* in place of the one above */
        .n_name = sizeof YNN_NAME - 1,
        .kind = PJRT_STRING,
        .text = YNN_PLAIN,
        .n_text = sizeof YNN_PLAIN - 1,
    },
};

enum { N_DEFAULTS = sizeof cpu_defaults / sizeof cpu_defaults[0] };

static void put_defaults(writer *w, const char *platform,
                         const trn__pjrt_options *o, uint32_t form)
{
    const int without =
        form & TRN__PJRT_PLAIN ? N_DEFAULTS - 2 : N_DEFAULTS - 1;
    if (strcmp(platform, "cpu") != 0)
        return;
    for (int i = 0; i < N_DEFAULTS; i++) {
        if (i != without && trn__pjrt_find(o, cpu_defaults[i].name) == NULL)
            put_option(w, &cpu_defaults[i]);
    }
}

static void put_all(writer *w, const char *platform, const trn__pjrt_options *o,
                    uint32_t form, trn__pjrt_encoded *out)
{
    put(w, build_options, sizeof build_options);
    if (form & TRN__PJRT_PORTABLE)
        put(w, portable_field, sizeof portable_field);
    out->ours = w->n;
    put_defaults(w, platform, o, form);
    out->after = w->n;
    for (int32_t i = 0; i < o->n; i++)
        put_option(w, &o->list[i]);
}

/* Is it the option that they are about, and not a longer name? */
static bool are_about(const char *words, const trn__pjrt_option *o)
{
    static const char more[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    const char *at = strstr(words, o->name);
    return strstr(words, "No such compile option") != NULL && at != NULL &&
           strspn(at + o->n_name, more) == 0;
}

const char *trn__pjrt_drop_default(trn__pjrt_encoded *e, const char *words)
{
    for (int i = 0; i < N_DEFAULTS; i++) {
        const trn__pjrt_option *o = &cpu_defaults[i];
        char bytes[128] = {0};
        writer w = {.at = bytes};
        if (!are_about(words, o))
            continue;
        put_option(&w, o);
        for (size_t at = e->ours; at + w.n <= e->after; at++) {
            if (memcmp(e->bytes + at, bytes, w.n) != 0)
                continue;
            memmove(e->bytes + at, e->bytes + at + w.n, e->n - at - w.n);
            e->n -= w.n;
            e->after -= w.n;
            return o->name;
        }
    }
    return NULL;
}

/* Reads a number at *at; false: the bytes end before it does. */
static bool get_number(const char *bytes, size_t n, size_t *at, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; shift < 64 && *at < n; shift += 7) {
        unsigned char byte = (unsigned char)bytes[(*at)++];
        *v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* Reads tag and length of a field that holds bytes; they lie within n. */
static bool get_field(const char *bytes, size_t n, size_t *at, uint64_t tag,
                      uint64_t *length)
{
    uint64_t found;
    return get_number(bytes, n, at, &found) && found == tag &&
           get_number(bytes, n, at, length) && *length <= n - *at;
}

/* An entry with a name and a value, from *at on, and nothing else. */
static bool get_option(const char *bytes, size_t n, size_t *at)
{
    uint64_t whole, name, value;
    if (!get_field(bytes, n, at, TAG_OPTION, &whole))
        return false;
    size_t end = *at + (size_t)whole;
    if (!get_field(bytes, end, at, TAG_NAME, &name) || name == 0)
        return false;
    *at += (size_t)name;
    if (!get_field(bytes, end, at, TAG_VALUE, &value) || value == 0)
        return false;
    *at += (size_t)value;
    return *at == end;
}

bool trn__pjrt_encoding_is_good(const char *bytes, size_t n_bytes)
{
    size_t at = sizeof build_options;
    if (n_bytes < at || memcmp(bytes, build_options, at) != 0)
        return false;
    if (n_bytes - at >= sizeof portable_field &&
        memcmp(bytes + at, portable_field, sizeof portable_field) == 0)
        at += sizeof portable_field;
    while (at < n_bytes) {
        if (!get_option(bytes, n_bytes, &at))
            return false;
    }
    return true;
}

int32_t trn__pjrt_encode(const trn_host_services *host, const char *platform,
                         const trn__pjrt_options *o, uint32_t form,
                         trn__pjrt_encoded *out, trn__pjrt_fault *fault)
{
    writer w = {.n = 0};
    put_all(&w, platform, o, form, out);
    w.at = host->alloc(host->host, w.n);
    if (w.at == NULL)
        return trn__pjrt_say(fault, TRN_ERR_NOMEM, "pjrt: no memory");
    w.n = 0;
    put_all(&w, platform, o, form, out);
    if (!trn__pjrt_encoding_is_good(w.at, w.n)) {
        host->dealloc(host->host, w.at);
        return trn__pjrt_say(fault, TRN_ERR_INTERNAL,
                             "pjrt: the compiler's options were not encoded "
                             "well");
    }
    out->bytes = w.at;
    out->n = w.n;
    return TRN_OK;
}
