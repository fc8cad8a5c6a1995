/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of host_job.h as the set-up and tear-down of a group of tests.
 */
#ifndef TRN_TESTS_HOST_SETUP_H
#define TRN_TESTS_HOST_SETUP_H

#include "host_job.h"

static const char *folder;

static inline int make_files(void **state)
{
    (void)state;
    folder = host_files();
    return folder == NULL;
}

static inline int remove_files(void **state)
{
    (void)state;
    host_files_remove();
    return 0;
}

#endif
