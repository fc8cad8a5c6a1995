/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads protobuf's wire format, message by message, without a description: by
 * numbers of fields alone.  Nothing of protobuf-c is in it.
 *
 * Whatever is not well formed fails the test.
 */
#ifndef TRN_TESTS_HLO_WIRE_H
#define TRN_TESTS_HLO_WIRE_H

#include "harness.h"

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

typedef struct wire {
    const uint8_t *at;
    size_t n;
} wire;

typedef struct wire_field {
    uint32_t number, type;
    uint64_t value; /* all but BYTES */
    wire body;      /* BYTES */
} wire_field;

static inline uint64_t wire_varint(wire *w)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        assert_true(w->n > 0);
        const uint8_t byte = *w->at++;
        w->n--;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
    fail_msg("a number of more than ten bytes");
    return 0;
}

static inline wire wire_take(wire *w, uint64_t n)
{
    const wire part = {.at = w->at, .n = (size_t)n};
    assert_true(n <= w->n);
    w->at += n;
    w->n -= (size_t)n;
    return part;
}

static inline uint64_t wire_fixed(wire *w, int bytes)
{
    const wire part = wire_take(w, (uint64_t)bytes);
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)part.at[i] << (8 * i);
    return value;
}

/* The next field of a message; false at its end. */
static inline bool wire_next(wire *w, wire_field *f)
{
    if (w->n == 0)
        return false;
    const uint64_t key = wire_varint(w);
    *f = (wire_field){.number = (uint32_t)(key >> 3), .type = key & 7};
    switch (f->type) {
    case WIRE_VARINT:
        f->value = wire_varint(w);
        break;
    case WIRE_64:
        f->value = wire_fixed(w, 8);
        break;
    case WIRE_32:
        f->value = wire_fixed(w, 4);
        break;
    case WIRE_BYTES:
        f->body = wire_take(w, wire_varint(w));
        break;
    default:
        fail_msg("field %u has wire type %u", f->number, f->type);
    }
    return true;
}

/* Occurrence `nth` of a field, if it is there. */
static inline bool wire_find(wire w, uint32_t number, int nth, wire_field *f)
{
    while (wire_next(&w, f))
        if (f->number == number && nth-- == 0)
            return true;
    return false;
}

static inline int wire_count(wire w, uint32_t number)
{
    wire_field f;
    int n = 0;
    while (wire_next(&w, &f))
        n += f.number == number;
    return n;
}

static inline wire wire_message(wire w, uint32_t number, int nth)
{
    wire_field f = {.number = 0};
    CHECK(wire_find(w, number, nth, &f), "field %u, %d\n", number, nth);
    assert_int_equal(f.type, WIRE_BYTES);
    return f.body;
}

/* A number; 0 where the field is absent, which then is how 0 is written. */
static inline int64_t wire_number(wire w, uint32_t number)
{
    wire_field f = {.number = 0};
    if (!wire_find(w, number, 0, &f))
        return 0;
    assert_int_equal(f.type, WIRE_VARINT);
    CHECK(f.value != 0, "field %u is a written zero\n", number);
    return (int64_t)f.value;
}

/* A packed list of numbers; how many. */
static inline int wire_list(wire w, uint32_t number, int64_t *out, int room)
{
    wire_field f = {.number = 0};
    int n = 0;
    if (!wire_find(w, number, 0, &f))
        return 0;
    assert_int_equal(wire_count(w, number), 1);
    assert_int_equal(f.type, WIRE_BYTES);
    while (f.body.n > 0) {
        assert_true(n < room);
        out[n++] = (int64_t)wire_varint(&f.body);
    }
    return n;
}

static inline bool wire_is(wire w, const char *text)
{
    return w.n == strlen(text) && memcmp(w.at, text, w.n) == 0;
}

#endif
