/* SPDX-License-Identifier: Apache-2.0
 *
 * A verified module as the bytes of an HloModuleProto.
 *
 * The module becomes a tree of messages in an arena, which protobuf-c packs.
 * Every array's shape has a layout, row-major, since some compilers end the
 * process where one is missing; nothing is written that does not follow from
 * the module, so that equal modules give equal bytes.
 */
#include "backends/hlo/hlo_ir.h"

#ifdef TRN_HAVE_PROTOBUFC

#include <string.h>

#include "backends/hlo/hlo_encode.h"

enum { MAY_ALIAS = 1 };

/* ---- shapes ---- */

static Trn__Pb__LayoutProto *row_major(trn__hlo_arena *a, uint32_t rank)
{
    Trn__Pb__LayoutProto *p = trn__hlo_take(a, 1, sizeof *p);
    trn__hlo_list order = {.n = (int32_t)rank};
    if (p == NULL)
        return NULL;
    for (uint32_t d = 0; d < rank; d++)
        order.at[d] = (int64_t)(rank - 1 - d);
    trn__pb__layout_proto__init(p);
    p->minor_to_major = trn__hlo_take_list(a, &order, &p->n_minor_to_major);
    return p;
}

Trn__Pb__ShapeProto *trn__hlo_shape_message(trn__hlo_arena *a,
                                            const trn__hlo_shape *shape)
{
    Trn__Pb__ShapeProto *p = trn__hlo_take(a, 1, sizeof *p);
    trn__hlo_list dims = {.n = (int32_t)shape->rank};
    if (p == NULL)
        return NULL;
    memcpy(dims.at, shape->dims, sizeof dims.at);
    trn__pb__shape_proto__init(p);
    p->element_type = (int32_t)shape->type;
    p->dimensions = trn__hlo_take_list(a, &dims, &p->n_dimensions);
    p->layout = row_major(a, shape->rank);
    return p;
}

static Trn__Pb__ShapeProto *tuple_message(trn__hlo_arena *a,
                                          const trn__hlo_module *m,
                                          const trn__hlo_inst *inst)
{
    const size_t n = (size_t)inst->n_operands;
    Trn__Pb__ShapeProto *p = trn__hlo_take(a, 1, sizeof *p);
    Trn__Pb__ShapeProto **parts = trn__hlo_take(a, n, sizeof *parts);
    if (p == NULL || parts == NULL)
        return NULL;
    trn__pb__shape_proto__init(p);
    p->element_type = TRN__HLO_TUPLE;
    p->tuple_shapes = parts;
    p->n_tuple_shapes = n;
    for (size_t k = 0; k < n; k++)
        parts[k] = trn__hlo_shape_message(
            a, &m->insts[trn__hlo_operand(m, inst, (int32_t)k)].shape);
    return p;
}

static Trn__Pb__ShapeProto *
shape_of(trn__hlo_arena *a, const trn__hlo_module *m, const trn__hlo_inst *inst)
{
    if (inst->op == TRN__HLO_OP_TUPLE_OF)
        return tuple_message(a, m, inst);
    return trn__hlo_shape_message(a, &inst->shape);
}

/* ---- what a computation takes and gives ---- */

/* With room for n parameters, all of them NULL. */
static Trn__Pb__ProgramShapeProto *signature(trn__hlo_arena *a, size_t n)
{
    Trn__Pb__ProgramShapeProto *p = trn__hlo_take(a, 1, sizeof *p);
    Trn__Pb__ShapeProto **shapes = trn__hlo_take(a, n, sizeof *shapes);
    char **names = trn__hlo_take(a, n, sizeof *names);
    if (p == NULL || shapes == NULL || names == NULL)
        return NULL;
    trn__pb__program_shape_proto__init(p);
    for (size_t i = 0; i < n; i++) {
        shapes[i] = NULL;
        names[i] = NULL;
    }
    p->parameters = shapes;
    p->n_parameters = n;
    p->parameter_names = names;
    p->n_parameter_names = n;
    return p;
}

static Trn__Pb__ProgramShapeProto *entry_signature(trn__hlo_arena *a,
                                                   const trn__hlo_module *m)
{
    Trn__Pb__ProgramShapeProto *p = signature(a, (size_t)m->n_params);
    if (p == NULL)
        return NULL;
    for (int32_t i = 0; i < m->n_insts; i++) {
        const trn__hlo_inst *inst = &m->insts[i];
        char name[TRN__HLO_NAME_SIZE];
        if (inst->op != TRN__HLO_OP_PARAMETER)
            continue;
        p->parameters[inst->number] = trn__hlo_shape_message(a, &inst->shape);
        p->parameter_names[inst->number] =
            trn__hlo_take_text(a, trn__hlo_name(m, i, name));
    }
    p->result = shape_of(a, m, &m->insts[m->n_insts - 1]);
    return p;
}

/* ---- computations ---- */

/* With room for n instructions, all of them to be put in. */
static Trn__Pb__HloComputationProto *computation(trn__hlo_arena *a, size_t n,
                                                 const char *name, int64_t id)
{
    Trn__Pb__HloComputationProto *p = trn__hlo_take(a, 1, sizeof *p);
    Trn__Pb__HloInstructionProto **insts = trn__hlo_take(a, n, sizeof *insts);
    if (p == NULL || insts == NULL)
        return NULL;
    trn__pb__hlo_computation_proto__init(p);
    p->name = trn__hlo_take_text(a, name);
    p->id = id;
    p->instructions = insts;
    p->n_instructions = n;
    return p;
}

static Trn__Pb__HloInstructionProto *
instruction(trn__hlo_arena *a, const char *name, int64_t id, uint32_t op)
{
    Trn__Pb__HloInstructionProto *p = trn__hlo_take(a, 1, sizeof *p);
    if (p == NULL)
        return NULL;
    trn__pb__hlo_instruction_proto__init(p);
    p->name = trn__hlo_take_text(a, name);
    p->opcode = trn__hlo_take_text(a, trn__hlo_op_text(op));
    p->id = id;
    return p;
}

static Trn__Pb__HloInstructionProto *
entry_instruction(trn__hlo_arena *a, const trn__hlo_module *m, int32_t i)
{
    const trn__hlo_inst *inst = &m->insts[i];
    char name[TRN__HLO_NAME_SIZE];
    Trn__Pb__HloInstructionProto *p =
        instruction(a, trn__hlo_name(m, i, name), trn__hlo_id(m, i), inst->op);
    int64_t *operands =
        trn__hlo_take(a, (size_t)inst->n_operands, sizeof *operands);
    if (p == NULL || operands == NULL)
        return NULL;
    for (int32_t k = 0; k < inst->n_operands; k++)
        operands[k] = trn__hlo_id(m, trn__hlo_operand(m, inst, k));
    p->operand_ids = operands;
    p->n_operand_ids = (size_t)inst->n_operands;
    p->shape = shape_of(a, m, inst);
    trn__hlo_encode_attributes(a, inst, p);
    return p;
}

static Trn__Pb__HloComputationProto *entry(trn__hlo_arena *a,
                                           const trn__hlo_module *m)
{
    Trn__Pb__HloComputationProto *p =
        computation(a, (size_t)m->n_insts, TRN__HLO_ENTRY_NAME,
                    trn__hlo_helper_id(m->n_helpers));
    if (p == NULL)
        return NULL;
    for (int32_t i = 0; i < m->n_insts; i++)
        p->instructions[i] = entry_instruction(a, m, i);
    p->root_id = trn__hlo_id(m, m->n_insts - 1);
    p->program_shape = entry_signature(a, m);
    return p;
}

/* Instruction k of a helper: a, b, or op(a, b), where COPY is that of b. */
static Trn__Pb__HloInstructionProto *
helper_instruction(trn__hlo_arena *a, const trn__hlo_module *m, int32_t helper,
                   int32_t k)
{
    const trn__hlo_helper *h = &m->helpers[helper];
    const trn__hlo_shape scalar = {.type = h->type};
    trn__hlo_list operands = {
        .n = 2,
        .at = {trn__hlo_part_id(helper, 0), trn__hlo_part_id(helper, 1)}};
    char name[TRN__HLO_NAME_SIZE];
    Trn__Pb__HloInstructionProto *p = instruction(
        a, trn__hlo_part_name(m, helper, k, name), trn__hlo_part_id(helper, k),
        k < 2 ? (uint32_t)TRN__HLO_OP_PARAMETER : h->op);
    if (p == NULL)
        return NULL;
    p->shape = trn__hlo_shape_message(a, &scalar);
    if (k < 2) {
        p->parameter_number = k;
        return p;
    }
    if (h->op == TRN__HLO_OP_COPY)
        operands = (trn__hlo_list){.n = 1, .at = {operands.at[1]}};
    p->operand_ids = trn__hlo_take_list(a, &operands, &p->n_operand_ids);
    return p;
}

static Trn__Pb__ProgramShapeProto *
helper_signature(trn__hlo_arena *a, const trn__hlo_module *m, int32_t helper)
{
    const trn__hlo_shape scalar = {.type = m->helpers[helper].type};
    Trn__Pb__ProgramShapeProto *p = signature(a, 2);
    char name[TRN__HLO_NAME_SIZE];
    if (p == NULL)
        return NULL;
    for (int32_t k = 0; k < 2; k++) {
        p->parameters[k] = trn__hlo_shape_message(a, &scalar);
        p->parameter_names[k] =
            trn__hlo_take_text(a, trn__hlo_part_name(m, helper, k, name));
    }
    p->result = trn__hlo_shape_message(a, &scalar);
    return p;
}

static Trn__Pb__HloComputationProto *
helper_computation(trn__hlo_arena *a, const trn__hlo_module *m, int32_t helper)
{
    char name[TRN__HLO_NAME_SIZE];
    Trn__Pb__HloComputationProto *p = computation(
        a, TRN__HLO_HELPER_INSTS, trn__hlo_helper_name(m, helper, name),
        trn__hlo_helper_id(helper));
    if (p == NULL)
        return NULL;
    for (int32_t k = 0; k < TRN__HLO_HELPER_INSTS; k++)
        p->instructions[k] = helper_instruction(a, m, helper, k);
    p->root_id = trn__hlo_part_id(helper, TRN__HLO_HELPER_INSTS - 1);
    p->program_shape = helper_signature(a, m, helper);
    return p;
}

/* ---- the module ---- */

/* The result is a tuple, so a part of it has an index of one number. */
static Trn__Pb__HloInputOutputAliasProto *aliases(trn__hlo_arena *a,
                                                  const trn__hlo_module *m)
{
    const size_t n = (size_t)m->n_aliases;
    Trn__Pb__HloInputOutputAliasProto *p = trn__hlo_take(a, 1, sizeof *p);
    Trn__Pb__HloInputOutputAliasEntry **rows =
        trn__hlo_take(a, n, sizeof *rows);
    Trn__Pb__HloInputOutputAliasEntry *row = trn__hlo_take(a, n, sizeof *row);
    if (p == NULL || rows == NULL || row == NULL)
        return NULL;
    trn__pb__hlo_input_output_alias_proto__init(p);
    for (size_t i = 0; i < n; i++) {
        trn__pb__hlo_input_output_alias_entry__init(&row[i]);
        row[i].output_shape_index = trn__hlo_take_number(
            a, m->aliases[i].result, &row[i].n_output_shape_index);
        row[i].parameter_number = m->aliases[i].param;
        row[i].kind = MAY_ALIAS;
        rows[i] = &row[i];
    }
    p->entries = rows;
    p->n_entries = n;
    return p;
}

static Trn__Pb__HloModuleProto *module(trn__hlo_arena *a,
                                       const trn__hlo_module *m)
{
    const size_t n = (size_t)m->n_helpers + 1;
    Trn__Pb__HloModuleProto *p = trn__hlo_take(a, 1, sizeof *p);
    Trn__Pb__HloComputationProto **all = trn__hlo_take(a, n, sizeof *all);
    if (p == NULL || all == NULL)
        return NULL;
    for (int32_t h = 0; h < m->n_helpers; h++)
        all[h] = helper_computation(a, m, h);
    all[n - 1] = entry(a, m);
    trn__pb__hlo_module_proto__init(p);
    p->name = trn__hlo_take_text(a, TRN__HLO_MODULE_NAME);
    p->entry_computation_name = trn__hlo_take_text(a, TRN__HLO_ENTRY_NAME);
    p->computations = all;
    p->n_computations = n;
    p->host_program_shape = entry_signature(a, m);
    p->entry_computation_id = trn__hlo_helper_id(m->n_helpers);
    if (m->n_aliases > 0)
        p->input_output_alias = aliases(a, m);
    return p;
}

void *trn__hlo_encode(const trn__hlo_module *m, size_t *n_bytes)
{
    trn__hlo_arena a = {.host = m->host};
    const Trn__Pb__HloModuleProto *p = module(&a, m);
    void *bytes = NULL;
    *n_bytes = 0;
    if (!a.failed) {
        const size_t size = trn__pb__hlo_module_proto__get_packed_size(p);
        bytes = m->host->alloc(m->host->host, size);
        if (bytes != NULL)
            *n_bytes = trn__pb__hlo_module_proto__pack(p, bytes);
    }
    trn__hlo_arena_free(&a);
    return bytes;
}

bool trn__hlo_available(void)
{
    return true;
}

#else

void *trn__hlo_encode(const trn__hlo_module *m, size_t *n_bytes)
{
    (void)m;
    *n_bytes = 0;
    return NULL;
}

bool trn__hlo_available(void)
{
    return false;
}

#endif
