/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of items: making them, finding them by path, their names.
 *
 * Names are the user's, paths are HDF5's: '/', control characters, '%' and
 * bytes that are no UTF-8 become %XX, so do the names "." and "..", and an
 * empty name is a single '%'.  Different names have different paths.
 */
#include <stdio.h>
#include <string.h>

#include "libtrn/io/checkpoint.h"

/* ---- names ---- */

/* Bytes of the UTF-8 character at p, 0 if there is none. */
static int utf8_length(const unsigned char *p)
{
    if (p[0] < 0x80)
        return 1;
    int n = p[0] >= 0xC2 && p[0] < 0xE0   ? 2
            : p[0] >= 0xE0 && p[0] < 0xF0 ? 3
            : p[0] >= 0xF0 && p[0] < 0xF5 ? 4
                                          : 0;
    for (int i = 1; i < n; i++) { /* a 0 ends it, too */
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    }
    bool surplus =
        (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xF0 && p[1] < 0x90) ||
        (p[0] == 0xF4 && p[1] >= 0x90) || (p[0] == 0xED && p[1] >= 0xA0);
    return surplus ? 0 : n;
}

bool trn__is_utf8(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    while (*p != 0) {
        int n = utf8_length(p);
        if (n == 0)
            return false;
        p += n;
    }
    return true;
}

char *trn__item_escape(char *to, unsigned char byte)
{
    static const char digits[] = "0123456789ABCDEF";
    *to++ = '%';
    *to++ = digits[byte >> 4];
    *to++ = digits[byte & 15];
    return to;
}

static char *put_name(char *to, const char *name)
{
    const unsigned char *p = (const unsigned char *)name;
    bool dots = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    if (*p == 0)
        *to++ = '%';
    while (*p != 0) {
        int n = utf8_length(p);
        if (n == 0 || *p < 0x20 || *p == 0x7F || *p == '/' || *p == '%' ||
            dots) {
            to = trn__item_escape(to, *p++);
            continue;
        }
        memcpy(to, p, (size_t)n);
        to += n;
        p += n;
    }
    *to = '\0';
    return to;
}

char *trn__item_path(trn_context *c, const char *parent, const char *name)
{
    size_t n = strlen(parent), bytes = n + 3 + 3 * strlen(name);
    char *path = trn__alloc(c, bytes);
    if (path == NULL) {
        trn__fail_memory(c, "a checkpoint", bytes);
        return NULL;
    }
    memcpy(path, parent, n + 1);
    path[n] = '/';
    put_name(path + n + 1, name);
    return path;
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

char *trn__item_name(trn_context *c, const char *path)
{
    const char *from = strrchr(path, '/');
    from = from == NULL ? path : from + 1;
    char *name = trn__alloc(c, strlen(from) + 1);
    if (name == NULL) {
        trn__fail_memory(c, "a checkpoint", strlen(from) + 1);
        return NULL;
    }
    char *to = name;
    if (strcmp(from, "%") == 0)
        from++;
    while (*from != '\0') {
        if (*from != '%') {
            *to++ = *from++;
            continue;
        }
        int high = digit_of(from[1]);
        int low = high < 0 ? -1 : digit_of(from[2]);
        if (low < 0 || high + low == 0) {
            trn__free(c, name);
            return NULL;
        }
        *to++ = (char)(16 * high + low);
        from += 3;
    }
    *to = '\0';
    return name;
}

/* ---- lists ---- */

trn__item *trn__items_add(trn__items *l, const char *parent, const char *name,
                          trn__use use, uint32_t type)
{
    trn_context *c = l->c;
    if (c->status != TRN_OK)
        return NULL;
    if (l->n == l->room) {
        int64_t room = l->room == 0 ? 32 : 2 * l->room;
        trn__item *at = trn__alloc(c, (size_t)room * sizeof *at);
        if (at == NULL) {
            trn__fail_memory(c, "a checkpoint", (uint64_t)room * sizeof *at);
            return NULL;
        }
        if (l->n > 0)
            memcpy(at, l->at, (size_t)l->n * sizeof *at);
        trn__free(c, l->at);
        l->at = at;
        l->room = room;
    }
    char *path = trn__item_path(c, parent, name);
    if (path == NULL)
        return NULL;
    trn__item *item = &l->at[l->n++];
    *item = (trn__item){.path = path, .use = use, .type = type, .bytes = 8};
    return item;
}

void trn__items_free(trn__items *l)
{
    for (int64_t i = 0; i < l->n; i++) {
        trn__free(l->c, l->at[i].path);
        trn__free(l->c, l->at[i].text);
        trn__free(l->c, l->at[i].stage);
    }
    trn__free(l->c, l->at);
    *l = (trn__items){.c = l->c};
}

/* Moves the item at the top of a heap of n down to its place. */
static void sink(trn__item **heap, int64_t top, int64_t n)
{
    for (int64_t child; (child = 2 * top + 1) < n; top = child) {
        if (child + 1 < n &&
            strcmp(heap[child]->path, heap[child + 1]->path) < 0)
            child++;
        if (strcmp(heap[top]->path, heap[child]->path) >= 0)
            return;
        trn__item *t = heap[top];
        heap[top] = heap[child];
        heap[child] = t;
    }
}

trn__item **trn__items_sorted(const trn__items *l, const char *file)
{
    trn_context *c = l->c;
    size_t bytes = (size_t)(l->n + 1) * sizeof(trn__item *);
    trn__item **list = trn__alloc(c, bytes);
    if (list == NULL) {
        trn__fail_memory(c, "a checkpoint", bytes);
        return NULL;
    }
    for (int64_t i = 0; i < l->n; i++)
        list[i] = &l->at[i];
    for (int64_t i = l->n / 2; i-- > 0;)
        sink(list, i, l->n);
    for (int64_t n = l->n; n-- > 1;) {
        trn__item *t = list[0];
        list[0] = list[n];
        list[n] = t;
        sink(list, 0, n);
    }
    for (int64_t i = 1; i < l->n; i++) {
        if (strcmp(list[i - 1]->path, list[i]->path) != 0)
            continue;
        trn__fail(c, file == NULL ? TRN_ERR_ARG : TRN_ERR_FORMAT,
                  "%.400s: %.400s is there twice; expected names of their own",
                  file == NULL ? "a checkpoint" : file, list[i]->path);
        trn__free(c, list);
        return NULL;
    }
    return list;
}

trn__item *trn__items_find(trn__item *const *sorted, int64_t n,
                           const char *path)
{
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        int order = strcmp(sorted[middle]->path, path);
        if (order == 0)
            return sorted[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* ---- for messages ---- */

trn__text trn__item_describe(uint32_t type, const trn__desc *shape)
{
    trn__text text;
    trn_arg arg = {.dtype = type, .rank = shape->rank};
    memcpy(arg.shape, shape->shape, sizeof shape->shape);
    if (type < TRN__ITEM_U64)
        return trn__describe(&arg);
    snprintf(text.s, sizeof text.s, "%s",
             type == TRN__ITEM_U64    ? "u64[]"
             : type == TRN__ITEM_TEXT ? "text"
                                      : "another type");
    return text;
}

/* With the digits that tell it from all others. */
static void exact_double(double value, char *text, size_t size)
{
    snprintf(text, size, "%.17g", value);
    for (char *p = text; *p != '\0'; p++) {
        if (strchr("0123456789+-einfa", *p) == NULL)
            *p = '.'; /* whatever the host's locale puts there */
    }
}

trn__text trn__item_value(const trn__item *item)
{
    trn__text text = {""};
    if (item->type == TRN__ITEM_TEXT)
        snprintf(text.s, sizeof text.s, "\"%.120s\"",
                 item->text == NULL ? "" : item->text);
    else if (item->type == TRN__ITEM_U64)
        snprintf(text.s, sizeof text.s, "%llu",
                 (unsigned long long)item->value.bits);
    else if (item->type == TRN_I64)
        snprintf(text.s, sizeof text.s, "%lld", (long long)item->value.i64);
    else if (item->type == TRN_F64)
        exact_double(item->value.f64, text.s, sizeof text.s);
    return text;
}
