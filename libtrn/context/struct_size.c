/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking and giving structs that start with their size.
 */
#include "libtrn/context/struct_size.h"

#include <string.h>

#include "trn.h"
#include "libtrn/context/context.h"

typedef struct sized {
    uint32_t ours;
    uint32_t first; /* of the first version */
    const char *init;
} sized;

static const sized structs[] = {
#define X(type, last, initialiser)                     \
    [TRN__SIZED_##type] = {                            \
        .ours = (uint32_t)sizeof(type),                \
        .first = (uint32_t)TRN__SIZE_WITH(type, last), \
        .init = (initialiser),                         \
    },
    TRN__SIZED_STRUCTS(X)
#undef X
};

/* The first field of each of these structs. */
static uint32_t size_of(const void *object)
{
    uint32_t size;
    memcpy(&size, object, sizeof size);
    return size;
}

static size_t common(const sized *s, const void *theirs)
{
    uint32_t size = size_of(theirs);
    return size < s->ours ? size : s->ours;
}

bool trn__struct_take(trn__sized kind, void *to, const void *from)
{
    const sized *s = &structs[kind];
    if (from == NULL)
        return true;
    if (size_of(from) < s->first)
        return false;
    memcpy(to, from, common(s, from));
    memcpy(to, &s->ours, sizeof s->ours);
    return true;
}

trn_status trn__struct_refuse(trn_context *c, const char *what, trn__sized kind,
                              const void *from)
{
    const sized *s = &structs[kind];
    return trn__fail(c, TRN_ERR_ARG,
                     "%s: options.size is %u; expected %u: start from %s", what,
                     (unsigned)size_of(from), (unsigned)s->ours, s->init);
}

trn_status trn__options_take(trn_context *c, const char *what, trn__sized kind,
                             void *to, const void *from)
{
    return trn__struct_take(kind, to, from)
               ? TRN_OK
               : trn__struct_refuse(c, what, kind, from);
}

bool trn__struct_holds(trn__sized kind, const void *to)
{
    return to != NULL && size_of(to) >= structs[kind].first;
}

void trn__struct_give(trn__sized kind, void *to, const void *answer)
{
    const size_t own = sizeof(uint32_t); /* the size field */
    size_t size = common(&structs[kind], to);
    memcpy((char *)to + own, (const char *)answer + own, size - own);
}
