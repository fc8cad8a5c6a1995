/* SPDX-License-Identifier: Apache-2.0
 *
 * What hangs on a context: objects it destroys at close, and host counters
 * that follow the success of steps.  Both are rings with a head in the context.
 */
#include "libtrn/context/context.h"

void trn__own(trn_context *c, trn__owned *object,
              void (*destroy)(trn__owned *self))
{
    object->destroy = destroy;
    object->next = c->owned.next; /* newest first */
    object->prev = &c->owned;
    object->next->prev = object;
    c->owned.next = object;
}

void trn__disown(trn__owned *object)
{
    object->prev->next = object->next;
    object->next->prev = object->prev;
    object->prev = object->next = object;
}

void trn__counter_add(trn_context *c, trn__counter *counter)
{
    counter->next = c->counters.next;
    counter->prev = &c->counters;
    counter->next->prev = counter;
    c->counters.next = counter;
}

void trn__counter_remove(trn__counter *counter)
{
    counter->prev->next = counter->next;
    counter->next->prev = counter->prev;
    counter->prev = counter->next = counter;
}

void trn__counters_begin(trn_context *c)
{
    trn__counter *head = &c->counters;
    for (trn__counter *k = head->next; k != head; k = k->next) {
        if (!k->held)
            k->committed = k->value;
    }
}

void trn__counters_commit(trn_context *c)
{
    trn__counter *head = &c->counters;
    for (trn__counter *k = head->next; k != head; k = k->next)
        k->committed = k->value;
}

void trn__counters_rollback_held(trn_context *c)
{
    trn__counter *head = &c->counters;
    for (trn__counter *k = head->next; k != head; k = k->next) {
        if (k->held)
            k->value = k->committed;
    }
}

void trn__counters_rollback(trn_context *c)
{
    trn__counter *head = &c->counters;
    for (trn__counter *k = head->next; k != head; k = k->next)
        k->value = k->committed;
}
