/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment: variables and cores.  Read at trn_open, nowhere else.
 */
#define _GNU_SOURCE /* sched_getaffinity, environ */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libtrn/context/context.h"

const char *trn__env(const char *name)
{
    const char *value = getenv(name);
    return value == NULL || value[0] == '\0' ? NULL : value;
}

bool trn__env_any_openmp(void)
{
    for (char **e = environ; e != NULL && *e != NULL; e++) {
        if (strncmp(*e, "OMP_", 4) == 0)
            return true;
    }
    return false;
}

int trn__online_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        int n = CPU_COUNT(&set);
        if (n > 0)
            return n;
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 && n < 1024 ? (int)n : 1;
}
