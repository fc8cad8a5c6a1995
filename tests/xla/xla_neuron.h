/* SPDX-License-Identifier: Apache-2.0
 *
 * What the Neuron compiler is known to take, typed by hand from its published
 * lists, and a reader of HLO text that finds what is outside of them.
 *
 * Nothing here knows our lowering: neither its profile nor its verifier.
 */
#ifndef TRN_TESTS_XLA_NEURON_H
#define TRN_TESTS_XLA_NEURON_H

#include <stdbool.h>
#include <stddef.h>

#include "trn.h"

/* Is there nothing in this module but what is known to be taken?  Else false,
 * with a sentence in `why` that quotes the line. */
bool xla_neuron_takes(const char *text, char *why, size_t size);
/* The same for the last step of c, lowered for Neuron. */
bool xla_neuron_takes_step(trn_context *c, char *why, size_t size);

#endif
