/* SPDX-License-Identifier: Apache-2.0
 *
 * What an instruction's message holds beside name, shape and operands, by
 * opcode: literals, dimensions, slices, padding, dot, gather and scatter.
 */
#ifdef TRN_HAVE_PROTOBUFC

#include <string.h>

#include "backends/hlo/hlo_encode.h"

/* ---- literals ---- */

/* The first `bytes` bytes of the literal's bits, low ones first. */
static void raw_bytes(trn__hlo_arena *a, uint64_t bits, size_t bytes,
                      ProtobufCBinaryData *out)
{
    out->data = trn__hlo_take(a, bytes, 1);
    out->len = out->data == NULL ? 0 : bytes;
    for (size_t i = 0; i < out->len; i++)
        out->data[i] = (uint8_t)(bits >> (8 * i));
}

/* A list of one element, whose bits those are. */
static void *one(trn__hlo_arena *a, size_t *n, const void *bits, size_t bytes)
{
    void *element = trn__hlo_take(a, 1, bytes);
    *n = element != NULL;
    if (element != NULL)
        memcpy(element, bits, bytes);
    return element;
}

static void put_scalar(trn__hlo_arena *a, uint32_t type, uint64_t bits,
                       Trn__Pb__LiteralProto *p)
{
    const uint32_t low = (uint32_t)bits;
    const protobuf_c_boolean truth = bits != 0;
    switch (type) {
    case TRN__HLO_PRED:
        p->preds = one(a, &p->n_preds, &truth, sizeof truth);
        break;
    case TRN__HLO_S32:
        p->s32s = one(a, &p->n_s32s, &low, sizeof low);
        break;
    case TRN__HLO_S64:
        p->s64s = one(a, &p->n_s64s, &bits, sizeof bits);
        break;
    case TRN__HLO_U8:
        raw_bytes(a, bits, 1, &p->u8s);
        break;
    case TRN__HLO_U32:
        p->u32s = one(a, &p->n_u32s, &low, sizeof low);
        break;
    case TRN__HLO_U64:
        p->u64s = one(a, &p->n_u64s, &bits, sizeof bits);
        break;
    case TRN__HLO_F16:
        raw_bytes(a, bits, 2, &p->f16s);
        break;
    case TRN__HLO_F32:
        p->f32s = one(a, &p->n_f32s, &low, sizeof low);
        break;
    case TRN__HLO_F64:
        p->f64s = one(a, &p->n_f64s, &bits, sizeof bits);
        break;
    default: /* bf16: the verifier has let nothing else through */
        raw_bytes(a, bits, 2, &p->bf16s);
        break;
    }
}

static Trn__Pb__LiteralProto *literal(trn__hlo_arena *a,
                                      const trn__hlo_inst *inst)
{
    Trn__Pb__LiteralProto *p = trn__hlo_take(a, 1, sizeof *p);
    if (p == NULL)
        return NULL;
    trn__pb__literal_proto__init(p);
    p->shape = trn__hlo_shape_message(a, &inst->shape);
    put_scalar(a, inst->shape.type, inst->literal, p);
    return p;
}

/* ---- slice, pad ---- */

static void slices(trn__hlo_arena *a, const trn__hlo_inst *inst,
                   Trn__Pb__HloInstructionProto *p)
{
    const size_t n = (size_t)inst->list[0].n;
    Trn__Pb__SliceDimensions **rows = trn__hlo_take(a, n, sizeof *rows);
    Trn__Pb__SliceDimensions *row = trn__hlo_take(a, n, sizeof *row);
    if (rows == NULL || row == NULL)
        return;
    for (size_t d = 0; d < n; d++) {
        trn__pb__slice_dimensions__init(&row[d]);
        row[d].start = inst->list[0].at[d];
        row[d].limit = inst->list[1].at[d];
        row[d].stride = inst->list[2].at[d];
        rows[d] = &row[d];
    }
    p->slice_dimensions = rows;
    p->n_slice_dimensions = n;
}

static Trn__Pb__PaddingConfig *padding(trn__hlo_arena *a,
                                       const trn__hlo_inst *inst)
{
    const size_t n = (size_t)inst->list[0].n;
    Trn__Pb__PaddingConfig *p = trn__hlo_take(a, 1, sizeof *p);
    Trn__Pb__PaddingConfigDimension **rows = trn__hlo_take(a, n, sizeof *rows);
    Trn__Pb__PaddingConfigDimension *row = trn__hlo_take(a, n, sizeof *row);
    if (p == NULL || rows == NULL || row == NULL)
        return NULL;
    trn__pb__padding_config__init(p);
    for (size_t d = 0; d < n; d++) {
        trn__pb__padding_config_dimension__init(&row[d]);
        row[d].edge_padding_low = inst->list[0].at[d];
        row[d].edge_padding_high = inst->list[1].at[d];
        row[d].interior_padding = inst->list[2].at[d];
        rows[d] = &row[d];
    }
    p->dimensions = rows;
    p->n_dimensions = n;
    return p;
}

/* ---- dot, gather, scatter ---- */

static Trn__Pb__DotDimensionNumbers *dot(trn__hlo_arena *a,
                                         const trn__hlo_list *list)
{
    Trn__Pb__DotDimensionNumbers *p = trn__hlo_take(a, 1, sizeof *p);
    if (p == NULL)
        return NULL;
    trn__pb__dot_dimension_numbers__init(p);
    p->lhs_contracting_dimensions =
        trn__hlo_take_list(a, &list[0], &p->n_lhs_contracting_dimensions);
    p->rhs_contracting_dimensions =
        trn__hlo_take_list(a, &list[1], &p->n_rhs_contracting_dimensions);
    p->lhs_batch_dimensions =
        trn__hlo_take_list(a, &list[2], &p->n_lhs_batch_dimensions);
    p->rhs_batch_dimensions =
        trn__hlo_take_list(a, &list[3], &p->n_rhs_batch_dimensions);
    return p;
}

static Trn__Pb__GatherDimensionNumbers *gather(trn__hlo_arena *a,
                                               const trn__hlo_inst *inst)
{
    const trn__hlo_list *list = inst->list;
    Trn__Pb__GatherDimensionNumbers *p = trn__hlo_take(a, 1, sizeof *p);
    if (p == NULL)
        return NULL;
    trn__pb__gather_dimension_numbers__init(p);
    p->offset_dims = trn__hlo_take_list(a, &list[0], &p->n_offset_dims);
    p->collapsed_slice_dims =
        trn__hlo_take_list(a, &list[1], &p->n_collapsed_slice_dims);
    p->start_index_map = trn__hlo_take_list(a, &list[2], &p->n_start_index_map);
    p->index_vector_dim = inst->number;
    return p;
}

static Trn__Pb__ScatterDimensionNumbers *scatter(trn__hlo_arena *a,
                                                 const trn__hlo_inst *inst)
{
    const trn__hlo_list *list = inst->list;
    Trn__Pb__ScatterDimensionNumbers *p = trn__hlo_take(a, 1, sizeof *p);
    if (p == NULL)
        return NULL;
    trn__pb__scatter_dimension_numbers__init(p);
    p->update_window_dims =
        trn__hlo_take_list(a, &list[0], &p->n_update_window_dims);
    p->inserted_window_dims =
        trn__hlo_take_list(a, &list[1], &p->n_inserted_window_dims);
    p->scatter_dims_to_operand_dims =
        trn__hlo_take_list(a, &list[2], &p->n_scatter_dims_to_operand_dims);
    p->index_vector_dim = inst->number;
    return p;
}

/* ---- all of them ---- */

static void call(trn__hlo_arena *a, const trn__hlo_inst *inst,
                 Trn__Pb__HloInstructionProto *p)
{
    p->called_computation_ids = trn__hlo_take_number(
        a, trn__hlo_helper_id(inst->helper), &p->n_called_computation_ids);
}

/* An opcode that is not named here has nothing but its operands. */
void trn__hlo_encode_attributes(trn__hlo_arena *a, const trn__hlo_inst *inst,
                                Trn__Pb__HloInstructionProto *p)
{
    const uint32_t op = inst->op;
    if (op == TRN__HLO_OP_PARAMETER)
        p->parameter_number = inst->number;
    else if (op == TRN__HLO_OP_CONSTANT)
        p->literal = literal(a, inst);
    else if (op == TRN__HLO_OP_SLICE)
        slices(a, inst, p);
    else if (op == TRN__HLO_OP_PAD)
        p->padding_config = padding(a, inst);
    else if (op == TRN__HLO_OP_COMPARE)
        p->comparison_direction =
            trn__hlo_take_text(a, trn__hlo_direction_text(inst->number));
    else if (op == TRN__HLO_OP_DOT)
        p->dot_dimension_numbers = dot(a, inst->list);
    if (op == TRN__HLO_OP_BROADCAST || op == TRN__HLO_OP_TRANSPOSE ||
        op == TRN__HLO_OP_REVERSE || op == TRN__HLO_OP_CONCATENATE ||
        op == TRN__HLO_OP_IOTA || op == TRN__HLO_OP_REDUCE)
        p->dimensions = trn__hlo_take_list(a, &inst->list[0], &p->n_dimensions);
    if (op == TRN__HLO_OP_GATHER) {
        p->gather_dimension_numbers = gather(a, inst);
        p->gather_slice_sizes =
            trn__hlo_take_list(a, &inst->list[3], &p->n_gather_slice_sizes);
    }
    if (op == TRN__HLO_OP_SCATTER)
        p->scatter_dimension_numbers = scatter(a, inst);
    if (op == TRN__HLO_OP_REDUCE || op == TRN__HLO_OP_SCATTER)
        call(a, inst, p);
}

#else

/* A build without protobuf-c has no messages; ISO C wants something here. */
typedef int trn__hlo_no_attributes;

#endif
