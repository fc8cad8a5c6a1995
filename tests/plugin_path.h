/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the shared objects of tests/plugins/ are.
 */
#ifndef TRN_TESTS_PLUGIN_PATH_H
#define TRN_TESTS_PLUGIN_PATH_H

#include <stdio.h>
#include <unistd.h>

#include "harness.h"

/* "<folder of the tests>/plugins/<file>", wherever below it this program is */
static inline const char *plugin_path(const char *file)
{
    static char path[4400];
    char program[4096];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(n > 0);
    program[n] = '\0';
    do {
        char *slash = strrchr(program, '/');
        CHECK(slash != NULL, "there is no plugins/%s\n", file);
        *slash = '\0';
        snprintf(path, sizeof path, "%s/plugins/%s", program, file);
    } while (access(path, F_OK) != 0);
    return path;
}

#endif
