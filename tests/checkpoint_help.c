/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of checkpoints share; see checkpoint_help.h.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "checkpoint_help.h"

static char folder[64];

/* The next file of a folder; one thread reads it. */
static struct dirent *next_entry(DIR *d)
{
    return readdir(d); /* cppcheck-suppress readdirCalled */
}

static void remove_folder(void)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    while (d != NULL && (e = next_entry(d)) != NULL) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            unlink(path);
    }
    if (d != NULL)
        closedir(d);
    rmdir(folder);
}

const char *checkpoint_folder(void)
{
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "%s", "/tmp/trn_checkpoint_XXXXXX");
        assert_non_null(mkdtemp(folder));
        atexit(remove_folder);
    }
    return folder;
}

const char *checkpoint_path(const char *name)
{
    static char paths[8][400];
    static int turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", checkpoint_folder(), name);
    return path;
}

int checkpoint_count(const char *path)
{
    DIR *d = opendir(path);
    int n = -2; /* "." and ".." */
    assert_non_null(d);
    while (next_entry(d) != NULL)
        n++;
    closedir(d);
    return n;
}

int checkpoint_files(void)
{
    return checkpoint_count(checkpoint_folder());
}

char *checkpoint_bytes(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return NULL;
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *n = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*n + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

void checkpoint_put(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

trn_checkpoint *checkpoint_of(captured_net *m)
{
    trn_checkpoint *k = trn_checkpoint_new(m->c);
    trn_checkpoint_module(k, "net", m->net);
    trn_checkpoint_optim(k, "adam", m->optim);
    trn_checkpoint_loader(k, "data", m->data);
    return k;
}

bool checkpoint_possible(void)
{
#ifdef TRN_HAVE_HDF5
    return true;
#else
    print_message("skipped: this build has no HDF5\n");
    return false;
#endif
}

void checkpoint_skips(void **state)
{
    (void)state;
    if (!checkpoint_possible())
        skip();
}
