/* SPDX-License-Identifier: Apache-2.0
 *
 * Loaders over a text: each position that has a whole window before it.
 *
 * Windows overlap, so they are not copied: sample i begins i characters after
 * sample 0, and its target follows it.  The text dies after its loaders,
 * because a context destroys the newest first.
 */
#include "libtrn/data/data.h"

static const char what[] = "trn_data_text";

static trn_status check(trn_context *c, const trn_text *text, int context)
{
    if (text == NULL)
        return trn__fail(c, TRN_ERR_ARG, "%s: text is NULL; expected a text",
                         what);
    if (text->c != c)
        return trn__fail(c, TRN_ERR_ARG,
                         "%s: the text belongs to another context; expected "
                         "all of one context",
                         what);
    if (context < 1)
        return trn__fail(c, TRN_ERR_ARG,
                         "%s: context is %d; expected 1 or more", what,
                         context);
    if (text->length <= context)
        return trn__fail(c, TRN_ERR_ARG,
                         "%s: the text has %lld characters; expected more "
                         "than the %d of a window",
                         what, (long long)text->length, context);
    return TRN_OK;
}

trn_loader *trn_data_text(trn_context *c, const trn_text *text, int context,
                          int64_t batch_size, const trn_loader_options *options)
{
    trn_loader_options o = TRN_LOADER_INIT;
    if (trn__loader_check(c, what, batch_size, options, &o) != TRN_OK ||
        check(c, text, context) != TRN_OK ||
        trn__loader_select(c, what, text->length - context, &o) != TRN_OK)
        return NULL;
    const int32_t *first = text->indices + o.first;
    const trn__column inputs = {
        .dtype = TRN_I32,
        .rank = 1,
        .shape = {context},
        .bytes = (size_t)context * sizeof *first,
        .pitch = sizeof *first,
        .first = (const char *)first,
    };
    const trn__column targets = {
        .dtype = TRN_I32,
        .bytes = sizeof *first,
        .pitch = sizeof *first,
        .first = (const char *)(first + context),
    };
    return trn__loader_new(c, what, batch_size, &o, &inputs, &targets);
}
