/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps in flight: executions whose outcome is not known yet, with what is
 * needed to take them back.
 */
#ifndef TRN_LIBTRN_FLIGHT_H
#define TRN_LIBTRN_FLIGHT_H

#include "libtrn/ops/plan.h"

#define TRN__MAX_FLIGHTS 2

struct trn__journal;

/* Executes the open step's plan; waits unless the device is asynchronous and a
 * step is open.  results: the storage of each output, NULL for states. */
trn_status trn__flight_start(trn_context *c, trn__plan *plan,
                             trn_buffer *const *outputs,
                             trn__storage *const *results);

/* The step that started the newest flight has ended: its journal goes with the
 * flight.  False if there is no such flight. */
bool trn__flight_seal(trn_context *c, struct trn__journal *journal);

/* Waits for all; raises the first error.  Outside of a step what failed is
 * undone then; inside, when the step has ended. */
trn_status trn__flights_finish(trn_context *c);

/* Takes a failed flight and those behind it back. */
void trn__flights_undo(trn_context *c);

#endif
