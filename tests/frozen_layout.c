/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of frozen_layout.h, from the frozen header and table of ops alone.
 */
#include "plugins/frozen_backend_v1_part3.h"

#include "frozen_layout.h"

const frozen_struct frozen_structs[] = {
#define FROZEN_STRUCT FROZEN_STRUCT_ENTRY
#include "plugins/frozen_fields_v1.def"
    {NULL, 0, 0},
};

const frozen_field frozen_fields[] = {
#define FROZEN_FIELD FROZEN_FIELD_ENTRY
#include "plugins/frozen_fields_v1.def"
    {NULL, NULL, 0, 0},
};

const frozen_constant frozen_constants[] = {
#define FROZEN_CONSTANT FROZEN_CONSTANT_ENTRY
#include "plugins/frozen_fields_v1.def"
    {NULL, 0},
};

const frozen_row frozen_rows[] = {
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    FROZEN_ROW_ENTRY(id, nm, cls, n_in, writes, attrs, kind)
#include "plugins/frozen_ops_v1.def"
    {0, NULL, NULL, 0, 0, NULL, NULL},
};

const frozen_attrs frozen_kinds[] = {
#define TRN_ATTRS FROZEN_ATTRS_ENTRY
#include "plugins/frozen_ops_v1.def"
    {NULL, NULL, 0},
};

/* The header's ids are those of the rows. */
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    _Static_assert((int)TRN_OP_##nm == (id) && (id) < TRN_OP_KNOWN,           \
                   "id of " #nm);
#include "plugins/frozen_ops_v1.def"

const uint32_t frozen_op_known = TRN_OP_KNOWN;
