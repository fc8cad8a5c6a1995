/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside a checkpoint: the list of objects, and the items that they come to.
 *
 * An item is one dataset of the file: a tensor, a number or a text.  Saving
 * writes the items of the list; loading compares them with those of the file,
 * reads all of them, and puts them in place.
 */
#ifndef TRN_LIBTRN_CHECKPOINT_H
#define TRN_LIBTRN_CHECKPOINT_H

#include "libtrn/io/file_calls.h"
#include "libtrn/tensor/tensor.h"
#include "trn/checkpoint.h"

/* Types of items: trn_dtype, and these. */
enum { TRN__ITEM_U64 = 32, TRN__ITEM_TEXT = 33 };

/* What an item is for, which is what loading does with it. */
typedef enum trn__use {
    TRN__USE_TENSOR, /* writes it */
    TRN__USE_COUNT,  /* sets a counter; of i64: 0 or more */
    TRN__USE_DRAWS,  /* sets the counter of a dropout module's generator */
    TRN__USE_STEP,   /* sets trn_step_index */
    TRN__USE_RATE,   /* sets a learning rate */
    TRN__USE_EPOCH,  /* with the next item: sets a loader's position */
    TRN__USE_BATCH,
    TRN__USE_EQUAL, /* the file's must be the same */
    TRN__USE_WARN,  /* else a warning is logged */
    TRN__USE_TELL   /* nothing; it is for the reader */
} trn__use;

typedef struct trn__item {
    char *path; /* "/modules/net/parameters/0.weight" */
    trn__use use;
    uint32_t type;
    trn__desc shape;    /* of numbers: rank 0; dtype is not used */
    uint64_t bytes;     /* in the file */
    trn_tensor *tensor; /* TRN__USE_TENSOR */
    union {
        uint64_t bits; /* of a number: i64, u64, f64 */
        int64_t i64;
        double f64;
    } value;
    char *text;    /* of TRN__ITEM_TEXT; the item's */
    void *target;  /* trn__counter, trn_module, trn_optim, trn_loader */
    void *stage;   /* what was read */
    bool was_lost; /* the tensor had no value when loading began */
    /* where the file has it */
    uint64_t offset;
    char sha256[65];
} trn__item;

typedef struct trn__items {
    trn_context *c;
    trn__item *at;
    int64_t n, room;
} trn__items;

/* Appends an item with a copy of its path: parent, a slash, and the name with
 * what a path cannot have as %XX.  NULL with the error raised. */
trn__item *trn__items_add(trn__items *l, const char *parent, const char *name,
                          trn__use use, uint32_t type);
void trn__items_free(trn__items *l);
/* All pointers of items, by path.  Equal paths raise TRN_ERR_ARG, or of those
 * of a file TRN_ERR_FORMAT.  To be given to trn__free; NULL with the error
 * raised.
 */
trn__item **trn__items_sorted(const trn__items *l, const char *file);
trn__item *trn__items_find(trn__item *const *sorted, int64_t n,
                           const char *path);

/* "%0A" of a byte; gives the place behind it. */
char *trn__item_escape(char *to, unsigned char byte);
/* parent, '/', the name escaped, as new text; NULL with the error raised. */
char *trn__item_path(trn_context *c, const char *parent, const char *name);
/* The name behind the last '/' of a path as it was, as new text; NULL with the
 * error raised, or if it is no name that was escaped. */
char *trn__item_name(trn_context *c, const char *path);
bool trn__is_utf8(const char *text);

/* "f32[2,3]", "u64", "text" for messages. */
trn__text trn__item_describe(uint32_t type, const trn__desc *shape);
/* The value of a number or text item, cut to fit. */
trn__text trn__item_value(const trn__item *item);

typedef enum trn__object_kind {
    TRN__OBJECT_MODULE,
    TRN__OBJECT_OPTIM,
    TRN__OBJECT_GENERATOR,
    TRN__OBJECT_LOADER,
    TRN__OBJECT_TENSOR
} trn__object_kind;

typedef struct trn__object {
    struct trn__object *next;
    trn__object_kind kind;
    void *it;
    char name[]; /* as given */
} trn__object;

/* A key and its text, "key\0text". */
typedef struct trn__note {
    struct trn__note *next;
    const char *text;
    char key[];
} trn__note;

struct trn_checkpoint {
    trn__owned owned; /* first */
    trn_context *c;
    trn__object *first, *last;
    trn__note *notes; /* oldest first */
    const trn__file_calls *calls;
};

#define TRN__NOTES "/metadata"

typedef enum trn__part {
    TRN__PART_ALL,    /* context, objects, notes: what is saved */
    TRN__PART_LOADED, /* context, objects */
    TRN__PART_LISTED  /* objects */
} trn__part;

/* Appends the items of that part to *l, which was empty.  Raises. */
trn_status trn__checkpoint_items(trn_checkpoint *k, trn__part part,
                                 trn__items *l);

/* Appends a note to a list; raises. */
trn_status trn__note_add(trn_context *c, trn__note **list, const char *key,
                         const char *text);
void trn__notes_free(trn_context *c, trn__note *list);

/* Do the numbers read make sense where they are to go, can the tensors be
 * written to?  Raises. */
trn_status trn__checkpoint_check(const trn__items *l, const char *path);
/* Puts what was read in place; nothing has changed if it fails. */
trn_status trn__checkpoint_commit(const trn__items *l, const char *path);

#endif
