/* SPDX-License-Identifier: Apache-2.0
 *
 * What the host offers to a device, and the CPU device behind reference_op.
 */
#ifndef TRN_LIBTRN_HOST_H
#define TRN_LIBTRN_HOST_H

#include "libtrn/context/context.h"

/* The services of context c. */
void trn__host_services(trn_context *c, trn_host_services *out);

/* reference_op: `host` is the context.  Any thread; calls wait for each other.
 * Raises nothing, since the context belongs to another thread. */
int32_t trn__reference_op(void *host, const trn_op_call *call);
bool trn__reference_supports(void *host, const trn_op_call *call);
trn_status trn__reference_open(trn_context *c);
/* The kernel set behind reference_op; NULL where there is none. */
const char *trn__reference_isa(trn_context *c);
void trn__reference_close(trn_context *c); /* also of one that is not open */

#endif
