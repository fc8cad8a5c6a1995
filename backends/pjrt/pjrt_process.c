/* SPDX-License-Identifier: Apache-2.0
 *
 * What belongs to the process and not to a context, behind one lock: the
 * plug-ins that have been loaded, and their clients.
 *
 * Contexts share a client when plug-in and options are the same, since one may
 * take most of a device's memory, or be the only one that a process may have.
 * The last that closes it destroys it.  PJRT lets several threads use a client
 * at once; what is ours is of one device each.
 *
 * A plug-in is loaded and initialized once.  Making a client may take long, or
 * for ever where a plug-in asks for hardware over a network; so a thread of its
 * own does it, and whoever waits for it has a deadline.  When that is over, the
 * thread stays behind: nothing can end it safely.  Until it returns, no other
 * client of that plug-in can be made; what it then gives is never used and
 * never freed.  So the thread touches nothing but the plug-in's record here,
 * which lives as long as the process.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/pjrt/pjrt.h"

enum { MAX_PLUGINS = 16, MAX_CLIENTS = 32, MAX_PATH = 4096, MAX_TEXT = 4096 };

struct trn__pjrt_plugin {
    char path[MAX_PATH];
    pjrt_calls calls;
    /* the client that is being made */
    pthread_t thread;
    char text[MAX_TEXT]; /* names and strings of its options */
    pjrt_named_value value[TRN__PJRT_MAX_OPTIONS];
    size_t n_values;
    pjrt_client *client;
    trn__pjrt_fault fault;
    bool busy;
    bool done;
    bool left_behind;

    bool initialized;
    int minor;
    int n_ending; /* clients that are being destroyed */
};

/* A client, and what it was made with. */
typedef struct shared_client {
    trn__pjrt_plugin *plugin; /* NULL: this record is free */
    pjrt_client *client;      /* NULL: it is being made or destroyed */
    int64_t n_users;
    char options[MAX_TEXT];
} shared_client;

/* The process that has loaded plug-ins; 0: none.  After a fork the child has
 * their memory, but none of their threads: whoever asks them for something
 * there waits for ever. */
static atomic_long owner;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static bool changed_made;
static trn__pjrt_plugin plugins[MAX_PLUGINS];
static int n_plugins;
static shared_client clients[MAX_CLIENTS];

/* The deadline must not move with the clock on the wall. */
static bool make_changed(void)
{
    pthread_condattr_t attr;
    if (changed_made)
        return true;
    if (pthread_condattr_init(&attr) != 0)
        return false;
    changed_made = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
                   pthread_cond_init(&changed, &attr) == 0;
    pthread_condattr_destroy(&attr);
    return changed_made;
}

static trn__pjrt_plugin *find(const char *path)
{
    for (int i = 0; i < n_plugins; i++) {
        if (strcmp(plugins[i].path, path) == 0)
            return &plugins[i];
    }
    return NULL;
}

static int32_t add(const char *path, trn__pjrt_plugin **plugin,
                   trn__pjrt_fault *fault)
{
    trn__pjrt_plugin *p = &plugins[n_plugins];
    if (n_plugins == MAX_PLUGINS || strlen(path) >= sizeof p->path ||
        !make_changed())
        return trn__pjrt_say(fault, TRN_ERR_UNSUPPORTED,
                             "pjrt: %.300s: no room; a process may load %d "
                             "plug-ins",
                             path, MAX_PLUGINS);
    atomic_store(&owner, (long)getpid());
    int32_t status = trn__pjrt_load(path, &p->calls, &p->minor, fault);
    if (status != TRN_OK) {
        if (n_plugins == 0) /* nobody's threads */
            atomic_store(&owner, 0L);
        return status;
    }
    memcpy(p->path, path, strlen(path) + 1);
    n_plugins++;
    *plugin = p;
    return TRN_OK;
}

int32_t trn__pjrt_plugin_at(const char *path, trn__pjrt_plugin **plugin,
                            trn__pjrt_fault *fault)
{
    long loaded_by = atomic_load(&owner); /* the lock may be the parent's */
    if (loaded_by != 0 && loaded_by != (long)getpid())
        return trn__pjrt_say(fault, TRN_ERR_DEVICE,
                             "pjrt: %.300s: this process was forked from one "
                             "that has loaded a plug-in, whose threads are not "
                             "here; expected exec after the fork, or the fork "
                             "before the first trn_open",
                             path);
    pthread_mutex_lock(&lock);
    *plugin = find(path);
    int32_t status = *plugin != NULL ? TRN_OK : add(path, plugin, fault);
    pthread_mutex_unlock(&lock);
    return status;
}

const pjrt_calls *trn__pjrt_calls_of(const trn__pjrt_plugin *plugin)
{
    return &plugin->calls;
}

int trn__pjrt_minor_of(const trn__pjrt_plugin *plugin)
{
    return plugin->minor;
}

/* ---- the thread that makes a client ---- */

static int32_t initialize(trn__pjrt_plugin *p, trn__pjrt_fault *fault)
{
    pjrt_initialize_args args = PJRT_INIT(pjrt_initialize_args, extensions);
    if (p->initialized)
        return TRN_OK;
    int32_t status = trn__pjrt_check(&p->calls, p->calls.initialize(&args),
                                     "initializing the plug-in", fault);
    p->initialized = status == TRN_OK;
    return status;
}

static void *make_client(void *arg)
{
    trn__pjrt_plugin *p = arg;
    trn__pjrt_fault fault = {.status = TRN_OK};
    pjrt_client_create_args args =
        PJRT_INIT(pjrt_client_create_args, store_too);
    args.options = p->n_values > 0 ? p->value : NULL;
    args.n_options = p->n_values;
    if (initialize(p, &fault) == TRN_OK)
        trn__pjrt_check(&p->calls, p->calls.client_create(&args),
                        "making a client", &fault);
    pthread_mutex_lock(&lock);
    p->client = fault.status == TRN_OK ? args.client : NULL;
    p->fault = fault;
    p->done = true;
    if (p->left_behind)
        p->busy = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* ---- who waits for it; the lock is held ---- */

/* A copy that outlives the context; NULL: it does not fit. */
static const char *keep(trn__pjrt_plugin *p, size_t *used, const char *text,
                        size_t n)
{
    char *at = p->text + *used;
    if (n + 1 > sizeof p->text - *used)
        return NULL;
    memcpy(at, text, n);
    at[n] = '\0';
    *used += n + 1;
    return at;
}

static bool keep_options(trn__pjrt_plugin *p, const trn__pjrt_options *o)
{
    size_t used = 0;
    for (int32_t i = 0; i < o->n; i++) {
        const trn__pjrt_option *from = &o->list[i];
        pjrt_named_value v = PJRT_INIT(pjrt_named_value, value_size);
        v.name = keep(p, &used, from->name, from->n_name);
        v.name_size = from->n_name;
        v.kind = from->kind;
        v.value_size = 1;
        switch ((pjrt_value_kind)from->kind) {
        case PJRT_BOOL:
            v.value.truth = from->truth;
            break;
        case PJRT_INT64:
            v.value.integer = from->integer;
            break;
        case PJRT_FLOAT:
            v.value.real = (float)from->real;
            break;
        case PJRT_STRING:
            v.value.string = keep(p, &used, from->text, from->n_text);
            v.value_size = from->n_text;
            break;
        }
        if (v.name == NULL || (v.kind == PJRT_STRING && v.value.string == NULL))
            return false;
        p->value[i] = v;
    }
    p->n_values = (size_t)o->n;
    return true;
}

static shared_client *find_client(const trn__pjrt_plugin *p,
                                  const char *options)
{
    for (int i = 0; i < MAX_CLIENTS; i++) {
        shared_client *s = &clients[i];
        if (s->plugin == p && s->client != NULL &&
            strcmp(s->options, options) == 0)
            return s;
    }
    return NULL;
}

static shared_client *free_record(void)
{
    for (int i = 0; i < MAX_CLIENTS; i++) {
        if (clients[i].plugin == NULL)
            return &clients[i];
    }
    return NULL;
}

/* May a client be made?  Not while another one is being made, or is going and
 * may still hold the device. */
static bool is_free(const trn__pjrt_plugin *p)
{
    return !p->busy && p->n_ending == 0;
}

/* Waits for a client to share, which *found then is, or to make one. */
static int32_t wait_for_turn(trn__pjrt_plugin *p, const char *options,
                             const struct timespec *deadline,
                             shared_client **found, trn__pjrt_fault *fault)
{
    int late = 0;
    while ((*found = find_client(p, options)) == NULL && !is_free(p)) {
        if (late == ETIMEDOUT)
            return trn__pjrt_say(fault, TRN_ERR_DEVICE,
                                 "pjrt: making a client: an earlier attempt "
                                 "with this plug-in still hangs");
        late = pthread_cond_timedwait(&changed, &lock, deadline);
    }
    return TRN_OK;
}

static int32_t begin(trn__pjrt_plugin *p, const trn__pjrt_options *o,
                     const char *options, shared_client **made,
                     trn__pjrt_fault *fault)
{
    shared_client *s = free_record();
    if (s == NULL)
        return trn__pjrt_say(fault, TRN_ERR_UNSUPPORTED,
                             "pjrt: making a client: a process may have %d",
                             MAX_CLIENTS);
    if (strlen(options) >= sizeof s->options || !keep_options(p, o))
        return trn__pjrt_say(fault, TRN_ERR_ARG,
                             "pjrt: pjrt_create_options: longer than %d bytes",
                             MAX_TEXT);
    p->done = p->left_behind = false;
    p->client = NULL;
    if (!trn__pjrt_thread_start(&p->thread, make_client, p))
        return trn__pjrt_say(fault, TRN_ERR_DEVICE,
                             "pjrt: making a client: no thread for it");
    p->busy = true;
    s->plugin = p;
    s->n_users = 0;
    memcpy(s->options, options, strlen(options) + 1);
    *made = s;
    return TRN_OK;
}

/* Takes what the thread made; others may make a client now. */
static int32_t finish(trn__pjrt_plugin *p, const struct timespec *deadline,
                      pjrt_client **client, trn__pjrt_fault *fault)
{
    while (!p->done) {
        if (pthread_cond_timedwait(&changed, &lock, deadline) != ETIMEDOUT ||
            p->done)
            continue;
        p->left_behind = true;
        pthread_detach(p->thread);
        return trn__pjrt_say(fault, TRN_ERR_DEVICE,
                             "pjrt: making a client: no answer in time; does "
                             "the plug-in wait for hardware or a network that "
                             "is not there?  (pjrt_timeout allows more)");
    }
    pthread_join(p->thread, NULL); /* it needs the lock no more */
    *client = p->client;
    *fault = p->fault;
    p->busy = false;
    return fault->status;
}

static int32_t make(trn__pjrt_plugin *p, const trn__pjrt_options *o,
                    const char *options, const struct timespec *deadline,
                    shared_client **made, trn__pjrt_fault *fault)
{
    int32_t status = begin(p, o, options, made, fault);
    if (status != TRN_OK || *made == NULL)
        return status;
    status = finish(p, deadline, &(*made)->client, fault);
    if (status != TRN_OK)
        (*made)->plugin = NULL;
    pthread_cond_broadcast(&changed);
    return status;
}

int32_t trn__pjrt_client_open(trn__pjrt_plugin *plugin,
                              const trn__pjrt_options *o, const char *text,
                              int seconds, pjrt_client **client,
                              trn__pjrt_fault *fault)
{
    struct timespec deadline;
    shared_client *s = NULL;
    const char *options = text == NULL ? "" : text;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += seconds;
    pthread_mutex_lock(&lock);
    int32_t status = wait_for_turn(plugin, options, &deadline, &s, fault);
    if (status == TRN_OK && s == NULL)
        status = make(plugin, o, options, &deadline, &s, fault);
    if (status == TRN_OK && s != NULL) {
        s->n_users++;
        *client = s->client;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* The lock is open while the plug-in works, and nobody shares it any more. */
static void destroy(shared_client *s)
{
    trn__pjrt_plugin *p = s->plugin;
    pjrt_client_destroy_args args = PJRT_INIT(pjrt_client_destroy_args, client);
    args.client = s->client;
    s->client = NULL;
    p->n_ending++;
    pthread_mutex_unlock(&lock);
    trn__pjrt_ignore(&p->calls, p->calls.client_destroy(&args));
    pthread_mutex_lock(&lock);
    p->n_ending--;
    s->plugin = NULL;
    pthread_cond_broadcast(&changed);
}

void trn__pjrt_client_close(const pjrt_client *client)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; client != NULL && i < MAX_CLIENTS; i++) {
        shared_client *s = &clients[i];
        if (s->client != client)
            continue;
        if (--s->n_users == 0)
            destroy(s);
        break;
    }
    pthread_mutex_unlock(&lock);
}
