/* SPDX-License-Identifier: Apache-2.0
 *
 * For the shim without a real plug-in, in its mode "fake": clients that have
 * two devices and can do nothing, so that a sanitizer sees no foreign code.
 */
#ifndef TRN_TESTS_PJRT_SHIM_FAKE_H
#define TRN_TESTS_PJRT_SHIM_FAKE_H

#include <stdatomic.h>

#include "../../backends/pjrt/pjrt_api.h"

enum { FAKE_CLIENTS = 64, FAKE_DEVICES = 2 };
static char fake_objects[FAKE_CLIENTS];
static atomic_uint n_fake;

static pjrt_error *fake_client_create(pjrt_client_create_args *a)
{
    a->client = (pjrt_client *)(void *)&fake_objects[n_fake++ % FAKE_CLIENTS];
    return NULL;
}

static pjrt_error *fake_client_destroy(pjrt_client_destroy_args *a)
{
    (void)a;
    return NULL;
}

static pjrt_error *fake_platform_name(pjrt_platform_name_args *a)
{
    static const char name[] = "fake";
    a->text = name;
    a->text_size = sizeof name - 1;
    return NULL;
}

static pjrt_error *fake_client_devices(pjrt_client_devices_args *a)
{
    static pjrt_device *const devices[FAKE_DEVICES] = {
        (pjrt_device *)(void *)&fake_objects[0],
        (pjrt_device *)(void *)&fake_objects[1],
    };
    a->devices = devices;
    a->n_devices = FAKE_DEVICES;
    return NULL;
}

static void fake_fill(pjrt_calls *c)
{
    c->client_create = fake_client_create;
    c->client_destroy = fake_client_destroy;
    c->platform_name = fake_platform_name;
    c->client_devices = fake_client_devices;
}

#endif
