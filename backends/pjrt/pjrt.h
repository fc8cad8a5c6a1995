/* SPDX-License-Identifier: Apache-2.0
 *
 * The pjrt device: any accelerator whose vendor has an OpenXLA PJRT plug-in.
 *
 * It takes whole steps, which backends/hlo/ lowers to HLO and the plug-in
 * compiles.  A trn_buffer is our handle around a buffer of the plug-in, which
 * is replaced, never written: an execution gives new buffers, or takes over
 * the memory of those that it overwrites (donation).
 *
 * Faults travel as trn__pjrt_fault, a status and a sentence, up to the entry
 * that the host called, which hands them to it.
 */
#ifndef TRN_BACKENDS_PJRT_H
#define TRN_BACKENDS_PJRT_H

#include <pthread.h>

#include "backends/hlo/hlo.h"
#include "backends/pjrt/pjrt_api.h"

typedef struct trn__pjrt_fault {
    int32_t status;
    char text[768];
} trn__pjrt_fault;

/* One "name=value" of an option's text, into which it points. */
typedef struct trn__pjrt_option {
    const char *name, *text;
    size_t n_name, n_text;
    uint32_t kind; /* enum pjrt_value_kind, as guessed from the text */
    int64_t integer;
    double real;
    bool truth;
} trn__pjrt_option;

/* The compiler's options as the bytes of a message. */
typedef struct trn__pjrt_encoded {
    char *bytes;
    size_t n;
    size_t ours, after; /* our own defaults begin, end there */
} trn__pjrt_encoded;

#define TRN__PJRT_MAX_OPTIONS 32

typedef struct trn__pjrt_options {
    int32_t n;
    trn__pjrt_option list[TRN__PJRT_MAX_OPTIONS];
} trn__pjrt_options;

/* A plug-in that has been loaded; it stays so until the process ends. */
typedef struct trn__pjrt_plugin trn__pjrt_plugin;

struct trn_buffer {
    trn_buffer *next, **link; /* of the device's list */
    uint64_t bytes;
    /* The value: in `staged` if that is there, else in `there` if that is; of
     * a fresh handle, zeros. */
    pjrt_buffer *there;
    char *staged;
    uint32_t dtype; /* 0: not known yet */
    uint32_t rank;
    int64_t shape[TRN_MAX_RANK];
    uint64_t donated, used; /* the executions that did so last */
};

struct trn_program {
    trn_program *next, **link; /* of the device's list */
    trn__hlo_program *hlo;
    pjrt_loaded *loaded;
    uint32_t n_inputs, n_outputs, n_scalars, n_draws; /* of the graph */
    uint64_t bytes; /* temporary memory of an execution */
    int32_t n_aliased;
    /* For executions, of which one at a time is being started: */
    pjrt_buffer **arguments;
    bool *ours; /* the argument is made for this execution alone */
    pjrt_buffer **results;
    char *staging; /* room for any argument that the host makes */
    char *check;   /* room for the vector of checks */
};

/* An execution, from execute to wait. */
typedef struct trn__pjrt_flight {
    uint64_t ticket; /* 0: none */
    trn_program *program;
    pjrt_event *done;
    pjrt_buffer *check;
    bool settled; /* its outcome is known */
    trn_outcome outcome;
    trn__pjrt_fault fault;
} trn__pjrt_flight;

#define TRN__PJRT_FLIGHTS 2

struct trn_device {
    const trn_host_services *host;
    const pjrt_calls *api;
    pjrt_client *client; /* others may use it, too */
    pjrt_device *device;
    pjrt_device *execute_on; /* NULL: where compiled programs run anyway */
    const trn__hlo_profile *profile;
    trn__pjrt_encoded compile_options[2]; /* [1]: for plain products */
    trn_buffer *buffers;
    trn_program *programs;
    trn__pjrt_flight flight[TRN__PJRT_FLIGHTS]; /* the older one first */
    uint64_t last_ticket;
    uint64_t failed; /* the ticket that failed first, 0: none; all behind it
                        are cancelled until wait has told about it */
    uint64_t conversions; /* buffers that went through the host for another
                             shape */
    trn__pjrt_fault fault;
    char description[160];
};

/* pjrt_error.c */
/* Writes the sentence; gives the status. */
int32_t trn__pjrt_say(trn__pjrt_fault *fault, int32_t status, const char *form,
                      ...) TRN_PRINTF(3, 4);
/* TRN_OK for NULL; else "pjrt: <what>: <the plug-in's words>".  The error is
 * destroyed. */
int32_t trn__pjrt_check(const pjrt_calls *api, pjrt_error *error,
                        const char *what, trn__pjrt_fault *fault);
/* An error of a call that gives something back: nobody could act on it. */
void trn__pjrt_ignore(const pjrt_calls *api, pjrt_error *error);
/* Leaves the device's fault as the host's error; gives its status. */
int32_t trn__pjrt_raise(trn_device *dev);

/* pjrt_options.c */
/* text: "name=value,name=value", or NULL; option: its name, for messages */
int32_t trn__pjrt_parse(const char *text, const char *option,
                        trn__pjrt_options *out, trn__pjrt_fault *fault);
/* The last one of that name, or NULL. */
const trn__pjrt_option *trn__pjrt_find(const trn__pjrt_options *o,
                                       const char *name);
/* Text that is a number of seconds; NULL gives `standard`. */
int32_t trn__pjrt_seconds(const char *text, const char *option, int standard,
                          int *out, trn__pjrt_fault *fault);

/* pjrt_encode.c */
/* platform: the plug-in's name for it; form: bits of the two below. */
#define TRN__PJRT_PORTABLE 1u /* the program runs on a device named later */
#define TRN__PJRT_PLAIN 2u    /* no factor of a product is a broadcast */
int32_t trn__pjrt_encode(const trn_host_services *host, const char *platform,
                         const trn__pjrt_options *o, uint32_t form,
                         trn__pjrt_encoded *out, trn__pjrt_fault *fault);
/* Takes the default out that the plug-in says, in these words, not to have;
 * gives its name, NULL: they are not about one. */
const char *trn__pjrt_drop_default(trn__pjrt_encoded *e, const char *words);
/* Are these the bytes of options that a plug-in can take? */
bool trn__pjrt_encoding_is_good(const char *bytes, size_t n_bytes);

/* pjrt_load.c */
/* Loads a shared object and checks its table.  It is never unloaded. */
int32_t trn__pjrt_load(const char *path, pjrt_calls *calls, int *minor,
                       trn__pjrt_fault *fault);

/* pjrt_thread.c */
/* A thread with a large stack and all signals blocked; false: there is none. */
bool trn__pjrt_thread_start(pthread_t *thread, void *(*fn)(void *), void *arg);

/* pjrt_process.c */
int32_t trn__pjrt_plugin_at(const char *path, trn__pjrt_plugin **plugin,
                            trn__pjrt_fault *fault);
const pjrt_calls *trn__pjrt_calls_of(const trn__pjrt_plugin *plugin);
int trn__pjrt_minor_of(const trn__pjrt_plugin *plugin);
/* The client that others of this process have with the same text of options,
 * or one that a thread of its own makes; within so many seconds. */
int32_t trn__pjrt_client_open(trn__pjrt_plugin *plugin,
                              const trn__pjrt_options *o, const char *text,
                              int seconds, pjrt_client **client,
                              trn__pjrt_fault *fault);
/* Once for each open; the last one destroys it.  NULL is allowed. */
void trn__pjrt_client_close(const pjrt_client *client);

/* pjrt_transfer.c: all leave their fault in dev->fault */
int32_t trn__pjrt_upload(trn_device *dev, const void *data, uint32_t dtype,
                         uint32_t rank, const int64_t *shape,
                         pjrt_buffer **out);
/* `to` is packed, the last dimension fastest. */
int32_t trn__pjrt_download(trn_device *dev, pjrt_buffer *from, uint32_t rank,
                           void *to, uint64_t bytes);
/* Waits for the event and destroys it; NULL: nothing to wait for. */
int32_t trn__pjrt_await(trn_device *dev, pjrt_event *event, const char *what);
/* NULL is allowed. */
void trn__pjrt_drop(trn_device *dev, pjrt_buffer *buffer);

/* pjrt_buffer.c */
trn_buffer *trn__pjrt_alloc(trn_device *dev, uint64_t bytes);
trn_buffer *trn__pjrt_alloc_like(trn_device *dev, const trn_arg *like,
                                 uint64_t bytes);
void trn__pjrt_free(trn_device *dev, trn_buffer *b);
int32_t trn__pjrt_write(trn_device *dev, trn_buffer *b, uint64_t offset,
                        const void *data, uint64_t bytes);
int32_t trn__pjrt_read(trn_device *dev, const trn_buffer *b, uint64_t offset,
                       void *data, uint64_t bytes);
bool trn__pjrt_is_like(const trn_buffer *b, uint32_t dtype, uint32_t rank,
                       const int64_t *shape);
/* Makes b->there a buffer of that type and shape; fault in dev->fault. */
int32_t trn__pjrt_place(trn_device *dev, trn_buffer *b, uint32_t dtype,
                        uint32_t rank, const int64_t *shape);
/* The value of b as a buffer of its own. */
int32_t trn__pjrt_copy(trn_device *dev, const trn_buffer *b, uint32_t dtype,
                       uint32_t rank, const int64_t *shape, pjrt_buffer **out);
/* b takes over `there`; its old value is dropped. */
void trn__pjrt_replace(trn_device *dev, trn_buffer *b, pjrt_buffer *there,
                       uint32_t dtype, uint32_t rank, const int64_t *shape);

/* pjrt_program.c */
int32_t trn__pjrt_compile(trn_device *dev, const trn_graph *graph,
                          trn_program **program);
void trn__pjrt_release(trn_device *dev, trn_program *p);
uint64_t trn__pjrt_program_bytes(trn_device *dev, trn_program *p);

/* pjrt_execute.c */
int32_t trn__pjrt_execute(trn_device *dev, trn_program *p,
                          const trn_execution *e, uint64_t *ticket);

/* pjrt_flight.c */
int32_t trn__pjrt_wait(trn_device *dev, uint64_t ticket, trn_outcome *outcome);
/* Room for one more, NULL: two are in flight. */
trn__pjrt_flight *trn__pjrt_next_flight(trn_device *dev);
/* Has nothing before it failed?  Waits for those that have a check, or for all
 * of them; false: it is cancelled. */
bool trn__pjrt_may_launch(trn_device *dev, trn__pjrt_flight *f, bool all);
/* Waits for all that is in flight with that program (NULL: any). */
void trn__pjrt_drain(trn_device *dev, const trn_program *p);
/* It did not run, for the fault in dev->fault. */
void trn__pjrt_fail_flight(trn_device *dev, trn__pjrt_flight *f,
                           bool inputs_lost);

static inline uint64_t trn__pjrt_dtype_size(uint32_t dtype)
{
    static const uint8_t size[] = {0,
#define X(name, code, text, bytes) bytes,
                                   TRN_DTYPE_LIST(X)
#undef X
    };
    return size[dtype];
}

#endif
