/* SPDX-License-Identifier: Apache-2.0
 *
 * All memory of a context: one hook, counted, with a cache of freed blocks.
 *
 * A block is a 64-byte header and the caller's bytes, aligned to 64.  Sizes are
 * rounded up to classes (multiples of 64, then four steps per power of two), so
 * that a loop of equal steps finds every block in the cache: asking the system
 * anew would cost page faults in each step.  Check builds cache nothing, so
 * that tools see each lifetime.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "libtrn/context/context.h"
#include "libtrn/context/process.h"
#include "libtrn/context/struct_size.h"

#define ALIGNMENT 64
#define SHARED (-1) /* class of blocks that are never cached */
#define N_LINEAR 16 /* classes of 64 .. 1024 bytes */
#define N_CLASSES (N_LINEAR + 4 * 40)

typedef struct trn__block {
    void *raw;        /* what the hook gave */
    uint64_t bytes;   /* what the caller may use */
    int32_t class_no; /* which free list */
    struct trn__block *next;
} trn__block;

static void *default_alloc(void *user, size_t bytes)
{
    (void)user;
    return malloc(bytes);
}

static void default_free(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

/* The class of a size and the bytes of that class; -1: too large. */
static int class_of(uint64_t bytes, uint64_t *class_bytes)
{
    if (bytes <= 64 * N_LINEAR) {
        uint64_t n = bytes == 0 ? 1 : (bytes + 63) / 64;
        *class_bytes = n * 64;
        return (int)n - 1;
    }
    int log2 = 63 - __builtin_clzll(bytes - 1); /* 2^log2 < bytes */
    if (log2 >= 10 + 40)
        return -1;
    uint64_t step = (uint64_t)1 << (log2 - 2);
    uint64_t quarter = (bytes - 1 - ((uint64_t)1 << log2)) / step;
    *class_bytes = ((uint64_t)1 << log2) + (quarter + 1) * step;
    return N_LINEAR + 4 * (log2 - 10) + (int)quarter;
}

static size_t raw_bytes(uint64_t bytes)
{
    return (size_t)bytes + 2 * ALIGNMENT;
}

/* The hooks are called by one thread at a time, whoever it is. */
static void *ask_hook(trn__memory *m, uint64_t bytes)
{
    pthread_mutex_lock(&m->hook_lock);
    void *raw = m->alloc(m->user, raw_bytes(bytes));
    pthread_mutex_unlock(&m->hook_lock);
    return raw;
}

static void release_block(trn__memory *m, trn__block *block)
{
    pthread_mutex_lock(&m->hook_lock);
    m->free(m->user, block->raw, raw_bytes(block->bytes));
    pthread_mutex_unlock(&m->hook_lock);
}

static trn__block *block_in(void *raw, int class_no, uint64_t bytes)
{
    uintptr_t data =
        ((uintptr_t)raw + 2 * ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
    trn__block *block = (trn__block *)(data - ALIGNMENT);
    *block = (trn__block){.raw = raw, .bytes = bytes, .class_no = class_no};
    return block;
}

/* May the context hold so much more? */
static bool within_limit(const trn_context *c, uint64_t bytes)
{
    const trn__memory *m = &c->memory;
    const uint64_t limit = c->limits.memory;
    const uint64_t held = m->bytes_in_use + m->bytes_cached + m->shared_bytes;
    return limit == 0 || (held <= limit && bytes <= limit - held);
}

static trn__block *new_block(trn_context *c, int class_no, uint64_t bytes)
{
    trn__memory *m = &c->memory;
    if (!within_limit(c, bytes))
        trn__memory_trim(c);
    if (!within_limit(c, bytes))
        return NULL;
    void *raw = ask_hook(m, bytes);
    if (raw == NULL && m->bytes_cached > 0) {
        trn__memory_trim(c);
        raw = ask_hook(m, bytes);
    }
    if (raw == NULL)
        return NULL;
    m->blocks_asked++;
    return block_in(raw, class_no, bytes);
}

void *trn__alloc(trn_context *c, size_t bytes)
{
    trn__memory *m = &c->memory;
    uint64_t class_bytes;
    int class_no = class_of(bytes, &class_bytes);
    if (class_no < 0)
        return NULL;
    trn__block *block = m->free_lists[class_no];
    if (block != NULL) {
        m->free_lists[class_no] = block->next;
        m->bytes_cached -= block->bytes;
    } else {
        block = new_block(c, class_no, class_bytes);
        if (block == NULL)
            return NULL;
    }
    m->blocks_in_use++;
    m->bytes_in_use += block->bytes;
    if (m->bytes_in_use > m->bytes_peak)
        m->bytes_peak = m->bytes_in_use;
    return (char *)block + ALIGNMENT;
}

void *trn__alloc_zeroed(trn_context *c, size_t bytes)
{
    void *memory = trn__alloc(c, bytes);
    if (memory != NULL)
        memset(memory, 0, bytes);
    return memory;
}

void trn__free(trn_context *c, void *memory)
{
    if (memory == NULL)
        return;
    trn__memory *m = &c->memory;
    trn__block *block = (trn__block *)((char *)memory - ALIGNMENT);
    m->blocks_in_use--;
    m->bytes_in_use -= block->bytes;
#ifdef TRN_CHECK
    release_block(m, block);
#else
    block->next = m->free_lists[block->class_no];
    m->free_lists[block->class_no] = block;
    m->bytes_cached += block->bytes;
#endif
}

void trn__memory_trim(trn_context *c)
{
    trn__memory *m = &c->memory;
    for (int i = 0; i < N_CLASSES; i++) {
        while (m->free_lists[i] != NULL) {
            trn__block *block = m->free_lists[i];
            m->free_lists[i] = block->next;
            m->bytes_cached -= block->bytes;
            release_block(m, block);
        }
    }
}

void *trn__alloc_shared(trn_context *c, size_t bytes)
{
    trn__memory *m = &c->memory;
    if (bytes > SIZE_MAX - 2 * ALIGNMENT || !within_limit(c, bytes))
        return NULL;
    void *raw = ask_hook(m, bytes);
    if (raw == NULL)
        return NULL;
    uint64_t held = atomic_fetch_add(&m->shared_bytes, bytes) + bytes;
    uint64_t peak = atomic_load(&m->shared_peak);
    while (held > peak &&
           !atomic_compare_exchange_weak(&m->shared_peak, &peak, held))
        ;
    atomic_fetch_add(&m->shared_blocks, 1);
    atomic_fetch_add(&m->shared_asked, 1);
    return (char *)block_in(raw, SHARED, bytes) + ALIGNMENT;
}

void trn__free_shared(trn_context *c, void *memory)
{
    if (memory == NULL)
        return;
    trn__memory *m = &c->memory;
    trn__block *block = (trn__block *)((char *)memory - ALIGNMENT);
    TRN_ASSERT(block->class_no == SHARED);
    atomic_fetch_sub(&m->shared_bytes, block->bytes);
    atomic_fetch_sub(&m->shared_blocks, 1);
    release_block(m, block);
}

trn_status trn__memory_open(trn_context *c)
{
    trn__memory *m = &c->memory;
    size_t bytes = N_CLASSES * sizeof(trn__block *);
    m->free_lists = m->alloc(m->user, bytes);
    if (m->free_lists == NULL)
        return TRN_ERR_NOMEM;
    memset(m->free_lists, 0, bytes);
    return TRN_OK;
}

void trn__memory_close(trn_context *c)
{
    trn__memory *m = &c->memory;
    if (m->free_lists == NULL)
        return;
    trn__memory_trim(c);
    m->free(m->user, m->free_lists, N_CLASSES * sizeof(trn__block *));
    m->free_lists = NULL;
}

/* The context itself, through the hooks of its options. */
trn_context *trn__context_alloc(trn_alloc_fn alloc, trn_free_fn release,
                                void *user)
{
    alloc = alloc == NULL ? default_alloc : alloc;
    release = release == NULL ? default_free : release;
    trn_context *c = alloc(user, sizeof *c);
    if (c == NULL)
        return NULL;
    memset(c, 0, sizeof *c);
    if (pthread_mutex_init(&c->memory.hook_lock, NULL) != 0) {
        release(user, c, sizeof *c);
        return NULL;
    }
    c->memory.alloc = alloc;
    c->memory.free = release;
    c->memory.user = user;
    return c;
}

void trn__context_free(trn_context *c)
{
    trn_free_fn release = c->memory.free;
    pthread_mutex_destroy(&c->memory.hook_lock);
    release(c->memory.user, c, sizeof *c);
}

trn_status trn_memory(const trn_context *c, trn_memory_info *out)
{
    if (c == NULL)
        return TRN_ERR_NOMEM;
    if (!trn__struct_holds(TRN__SIZED_trn_memory_info, out))
        return TRN_ERR_ARG;
    const trn__memory *m = &c->memory;
    const trn_memory_info info = {
        .bytes_in_use = m->bytes_in_use + atomic_load(&m->shared_bytes),
        .bytes_peak = m->bytes_peak + atomic_load(&m->shared_peak),
        .bytes_cached = m->bytes_cached,
        .blocks_in_use = m->blocks_in_use + atomic_load(&m->shared_blocks),
        .blocks_asked = m->blocks_asked + atomic_load(&m->shared_asked),
    };
    trn__struct_give(TRN__SIZED_trn_memory_info, out, &info);
    return TRN_OK;
}

trn_status trn_memory_trim(trn_context *c)
{
    if (c == NULL || c->memory.free_lists == NULL)
        return TRN_ERR_NOMEM;
    trn__memory_trim(c);
    return TRN_OK;
}

trn_status trn_memory_reset_peak(trn_context *c)
{
    if (c == NULL)
        return TRN_ERR_NOMEM;
    c->memory.bytes_peak = c->memory.bytes_in_use;
    atomic_store(&c->memory.shared_peak, atomic_load(&c->memory.shared_bytes));
    return TRN_OK;
}

/* Memory of the process, for what process.c keeps until its end. */
void *trn__process_alloc(size_t bytes)
{
    return malloc(bytes);
}
