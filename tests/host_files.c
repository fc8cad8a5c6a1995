/* SPDX-License-Identifier: Apache-2.0
 *
 * The files that the jobs of host_job.h read: a text, images, packed labels,
 * and a packed file that is damaged.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef TRN_HAVE_ZLIB
#include <zlib.h>
#endif

#include "tests/host_job.h"

enum { SAMPLES = 48, SIDE = 12, TEXT = 20000 };

static char folder[64];
static const char *const names[] = {"text", "images", "labels.gz",
                                    "damaged.gz"};

/* SplitMix64, so that no part of the library makes its own input. */
static unsigned draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (unsigned)(z >> 40);
}

static bool put(const char *name, const void *bytes, size_t n)
{
    char path[120];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    bool good = f != NULL && fwrite(bytes, 1, n, f) == n;
    return f != NULL && fclose(f) == 0 && good;
}

/* Packed, where this build can pack; its reader knows both by their bytes. */
static bool put_packed(const char *name, const void *bytes, size_t n)
{
#ifdef TRN_HAVE_ZLIB
    char path[120];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    gzFile f = gzopen(path, "wb");
    bool good = f != NULL && gzwrite(f, bytes, (unsigned)n) == (int)n;
    return f != NULL && gzclose(f) == Z_OK && good;
#else
    return put(name, bytes, n);
#endif
}

static bool put_all(void)
{
    static unsigned char images[16 + SAMPLES * SIDE * SIDE] = {
        0, 0, 8, 3, 0, 0, 0, SAMPLES, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
    static unsigned char labels[8 + SAMPLES] = {0, 0, 8, 1, 0, 0, 0, SAMPLES};
    static const unsigned char damaged[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0,
                                            0,    3,    7, 7, 7, 7, 7, 7};
    static char text[TEXT];
    uint64_t state = 11;
    for (size_t i = 16; i < sizeof images; i++)
        images[i] = (unsigned char)draw(&state);
    for (size_t i = 8; i < sizeof labels; i++)
        labels[i] = (unsigned char)(draw(&state) % 10);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + draw(&state) % 26);
    return put("text", text, sizeof text) &&
           put("images", images, sizeof images) &&
           put_packed("labels.gz", labels, sizeof labels) &&
           put("damaged.gz", damaged, sizeof damaged);
}

const char *host_files(void)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/trn_host_XXXXXX",
             temporary != NULL && strlen(temporary) < 40 ? temporary : "/tmp");
    if (mkdtemp(folder) == NULL)
        return NULL;
    if (put_all())
        return folder;
    host_files_remove();
    return NULL;
}

void host_files_remove(void)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[120];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}
