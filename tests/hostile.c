/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of checkpoints that somebody has changed; see hostile.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint_help.h"
#include "hostile.h"

/* ---- reading ---- */

/* A word up to `stop`; what follows. */
static const char *take(const char *at, char stop, char *out, size_t size)
{
    const char *end = strchr(at, stop);
    assert_non_null(end);
    assert_true((size_t)(end - at) < size);
    memcpy(out, at, (size_t)(end - at));
    out[end - at] = '\0';
    return end + 1;
}

static const char *skip_word(const char *at, const char *word)
{
    assert_int_equal(strncmp(at, word, strlen(word)), 0);
    return at + strlen(word);
}

hostile_file hostile_read(const char *path)
{
    hostile_file f = {0};
    char sha[80];
    f.bytes = (unsigned char *)checkpoint_bytes(path, &f.n);
    assert_non_null(f.bytes);
    const char *at = (const char *)f.bytes;
    at = take(at, '\n', f.head, sizeof f.head);
    at = take(skip_word(at, "size "), ' ', f.size, sizeof f.size);
    at = take(skip_word(at, "index "), ' ', f.index, sizeof f.index);
    at = take(skip_word(at, "datasets "), '\n', f.count, sizeof f.count);
    at = take(skip_word(at, "metadata "), '\n', sha, sizeof sha);
    while (strncmp(at, "index ", 6) != 0) {
        assert_in_range(f.n_lines, 0, HOSTILE_LINES - 2);
        hostile_line *l = &f.line[f.n_lines++];
        at = take(at, ' ', l->at, sizeof l->at);
        at = take(at, ' ', l->bytes, sizeof l->bytes);
        at = take(at, ' ', sha, sizeof sha);
        at = take(at, ' ', l->type, sizeof l->type);
        at = take(at, '\n', l->path, sizeof l->path);
    }
    f.room = (size_t)strtoull(f.index, NULL, 10);
    return f;
}

hostile_file hostile_copy(const hostile_file *f)
{
    hostile_file copy = *f;
    copy.bytes = malloc(f->n + 1);
    assert_non_null(copy.bytes);
    memcpy(copy.bytes, f->bytes, f->n);
    return copy;
}

void hostile_end(hostile_file *f)
{
    free(f->bytes);
    f->bytes = NULL;
}

hostile_line *hostile_find(hostile_file *f, const char *path)
{
    for (int i = 0; i < f->n_lines; i++) {
        if (strcmp(f->line[i].path, path) == 0)
            return &f->line[i];
    }
    fail_msg("there is no %s", path);
    return NULL;
}

/* ---- changing ---- */

void hostile_splice(hostile_file *f, size_t at, size_t out, const void *bytes,
                    size_t in)
{
    assert_true(at <= f->n && out <= f->n - at);
    unsigned char *all = malloc(f->n - out + in + 1);
    assert_non_null(all);
    memcpy(all, f->bytes, at);
    if (in > 0)
        memcpy(all + at, bytes, in);
    memcpy(all + at + in, f->bytes + at + out, f->n - at - out);
    free(f->bytes);
    f->bytes = all;
    f->n = f->n - out + in;
}

/* The place of a line's dataset; false if it has none in the file. */
static bool place_of(const hostile_file *f, const hostile_line *l, size_t *at,
                     size_t *n)
{
    *at = (size_t)strtoull(l->at, NULL, 10);
    *n = (size_t)strtoull(l->bytes, NULL, 10);
    return *at <= f->n && *n <= f->n - *at;
}

bool hostile_is_metadata(const hostile_file *f, size_t at)
{
    size_t from, n;
    for (int i = 0; i < f->n_lines; i++) {
        if (place_of(f, &f->line[i], &from, &n) && at >= from && at < from + n)
            return false;
    }
    return at >= f->room && at < f->n;
}

/* ---- sealing ---- */

static void hash_metadata(const hostile_file *f, char out[65])
{
    char *all = malloc(f->n + 1);
    size_t used = 0, from = f->room, at, n;
    assert_non_null(all);
    for (int i = 0; i <= f->n_lines; i++) {
        size_t to = f->n;
        n = 0;
        if (i < f->n_lines && (!place_of(f, &f->line[i], &at, &n) || n == 0))
            continue;
        if (i < f->n_lines)
            to = at;
        if (to > from) {
            memcpy(all + used, f->bytes + from, to - from);
            used += to - from;
        }
        from = to + n > from ? to + n : from; /* lines may go back */
    }
    trn_sha256(all, used, out);
    free(all);
}

void hostile_seal(hostile_file *f)
{
    char sha[65];
    const size_t room = f->room + sizeof f->line;
    char *text = calloc(1, room);
    size_t at, n, used;
    assert_non_null(text);
    hash_metadata(f, sha);
    used = (size_t)snprintf(text, room,
                            "%s\nsize %s index %s datasets %s\nmetadata %s\n",
                            f->head, f->size, f->index, f->count, sha);
    for (int i = 0; i < f->n_lines; i++) {
        const hostile_line *l = &f->line[i];
        memset(sha, '0', 64);
        if (place_of(f, l, &at, &n))
            trn_sha256(f->bytes + at, n, sha);
        used += (size_t)snprintf(text + used, room - used, "%s %s %s %s %s\n",
                                 l->at, l->bytes, sha, l->type, l->path);
    }
    for (size_t i = 0; i < used; i++) {
        if (text[i] == HOSTILE_NUL)
            text[i] = '\0';
    }
    trn_sha256(text, used, sha);
    used += (size_t)snprintf(text + used, room - used, "index %s\n", sha);
    assert_true(used < f->room && f->room <= f->n);
    memcpy(f->bytes, text, f->room);
    free(text);
}
