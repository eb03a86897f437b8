/*
 * gearman_load: a load generator for any Gearman server. bench/compare.py compiles and runs it.
 *
 *     gearman_load PORT MODE JOBS CLIENTS WINDOW WORKERS PAYLOAD
 *
 * It connects to 127.0.0.1:PORT, runs JOBS jobs of the function "echo" with payloads of PAYLOAD bytes, prints one line
 * of JSON and exits with 0. Anything unexpected is an error on stderr and exit code 1; wrong arguments give exit code 2.
 *
 *     {"jobs": 8000, "seconds": 1.23, "processor_seconds": 0.45}
 *
 * Why it is written in C: a Gearman server is fast enough that a load generator in Python is the bottleneck, and then
 * the figures describe the generator. "processor_seconds" is this program's own processor time: near "seconds", the
 * server could do more than the figure says.
 *
 * One thread plays all clients and all workers, with epoll. Every connection has an input and an output buffer. What one
 * read brings is handled packet by packet; the answers collect in the output buffer and leave with one write.
 *
 * With WORKER_PORT the workers connect to another server than the clients. FUNCTION is for several runs at once on
 * servers of one cluster: each counts the jobs of its own workers, so no other's may get them.
 *
 * The modes:
 *
 *     foreground   CLIENTS clients keep WINDOW jobs each in flight; WORKERS workers return each payload. A job counts
 *                  when its client has the result. Time starts when all workers are asleep.
 *     background   CLIENTS clients keep WINDOW unacknowledged submits each in flight. A job counts when its client has
 *                  the handle. No worker takes part, so the jobs stay in the queue; WORKERS is ignored.
 *     drain        WORKERS workers empty a queue that a run in mode background has filled. A job counts when a worker
 *                  has received it and sends its result. CLIENTS and WINDOW are ignored.
 *     run          CLIENTS clients keep WINDOW unacknowledged submits each in flight, while WORKERS workers run the
 *                  jobs. A job counts when a worker has received it and sends its result. Time starts when all workers
 *                  are asleep.
 *
 * A worker behaves as the libraries do: it sends GRAB_JOB; after NO_JOB it sends PRE_SLEEP and waits for NOOP; after
 * JOB_ASSIGN it sends WORK_COMPLETE and the next GRAB_JOB together.
 */
#define PROGRAM "gearman_load"
#include "gearman_packets.h"

enum mode { FOREGROUND, BACKGROUND, DRAIN, RUN };

/* What the run is to do, from the command line. */
static enum mode mode;
static char function[64] = "echo"; /* followed by zero bytes */
static size_t function_size = 4;
static int port, worker_port; /* of the server for clients, and of the one for workers */
static long jobs, clients, window, workers, payload_size;
static char *payload;

/* How far it is. */
static long submitted, completed; /* completed: in the sense of the mode, see above */
static long sleeping;             /* workers that were told NO_JOB and no NOOP since */

/* The body of both kinds of submits: function, empty unique key, payload. */
static void submit_job(struct connection *client)
{
    send_packet(client, mode == FOREGROUND ? SUBMIT_JOB : SUBMIT_JOB_BG, function, function_size + 2, payload,
                (size_t)payload_size); /* with two zero bytes: it has no unique key */
    submitted++;
}

/* The next job takes the place of one in the window. */
static void submit_next(struct connection *client)
{
    if (submitted < jobs)
        submit_job(client);
}

/* Return the payload of a job as its result, and ask for the next job. JOB_ASSIGN has handle, function, payload. */
static void run_job(struct connection *worker, const unsigned char *body, size_t size)
{
    size_t handle = field_size(body, size);
    size_t function = field_size(body + handle, size - handle);
    const unsigned char *data = body + handle + function;
    send_packet(worker, WORK_COMPLETE, body, handle, data, size - handle - function);
    send_request(worker, GRAB_JOB);
    if (mode == DRAIN || mode == RUN)
        completed++;
}

static void handle_packet(struct connection *connection, uint32_t type, const unsigned char *body, size_t size)
{
    switch (type) {
    case JOB_CREATED: /* the acknowledgement of a submit; a foreground job is not done yet */
        completed += mode == BACKGROUND;
        if (mode != FOREGROUND)
            submit_next(connection);
        break;
    case WORK_COMPLETE:
        completed++;
        submit_next(connection);
        break;
    case JOB_ASSIGN:
        run_job(connection, body, size);
        break;
    case NO_JOB:
        sleeping++;
        send_request(connection, PRE_SLEEP);
        break;
    case NOOP:
        sleeping--;
        send_request(connection, GRAB_JOB);
        break;
    case ERROR: {
        size_t code = field_size(body, size);
        fail("the server sent ERROR %s: %.*s", (const char *)body, (int)(size - code), (const char *)body + code);
    }
    default:
        fail("the server sent a packet of type %u, which this load does not expect", type);
    }
}

/* Serve all connections until a counter has reached a number. */
static void run_until(const long *counter, long number)
{
    struct epoll_event events[EVENTS];
    while (*counter < number) {
        int count = epoll_wait(poller, events, EVENTS, STALL_MILLISECONDS);
        if (count < 0 && errno != EINTR)
            fail("epoll_wait: %s", strerror(errno));
        if (count == 0)
            fail("no packet for %d seconds: %ld jobs submitted, %ld of %ld done, %ld of %ld workers asleep",
                 STALL_MILLISECONDS / 1000, submitted, completed, jobs, sleeping, workers);
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            if (events[i].events & ~(uint32_t)EPOLLOUT) { /* also errors and hang-ups, which read() reports */
                read_input(connection);
                handle_input(connection);
            }
            flush(connection);
        }
    }
}

static void start_workers(struct connection **connections)
{
    for (long i = 0; i < workers; i++) {
        send_packet(connections[i], CAN_DO, function, function_size, NULL, 0);
        send_request(connections[i], GRAB_JOB);
        flush(connections[i]);
    }
}

/* Fill the window of every client. */
static void start_clients(struct connection **connections)
{
    for (long i = 0; i < clients; i++) {
        for (long k = 0; k < window && submitted < jobs; k++)
            submit_job(connections[i]);
        flush(connections[i]);
    }
}

static void parse_arguments(int count, char **words)
{
    static const char *const modes[] = {
        [FOREGROUND] = "foreground", [BACKGROUND] = "background", [DRAIN] = "drain", [RUN] = "run"};
    if (count < 8 || count > 10) {
        fprintf(stderr, "usage: gearman_load PORT MODE JOBS CLIENTS WINDOW WORKERS PAYLOAD [WORKER_PORT [FUNCTION]]\n");
        exit(2);
    }
    for (mode = FOREGROUND; mode <= RUN && strcmp(words[2], modes[mode]) != 0; mode++)
        ;
    if (mode > RUN) {
        fprintf(stderr, "gearman_load: MODE is foreground, background, drain or run, not \"%s\"\n", words[2]);
        exit(2);
    }
    port = (int)number(words[1], "PORT", 1, 65535);
    jobs = number(words[3], "JOBS", 1, 1000000000);
    clients = number(words[4], "CLIENTS", mode == DRAIN ? 0 : 1, 10000);
    window = number(words[5], "WINDOW", mode == DRAIN ? 0 : 1, 1000000);
    workers = number(words[6], "WORKERS", mode == BACKGROUND ? 0 : 1, 10000);
    payload_size = number(words[7], "PAYLOAD", 0, 1000000000);
    worker_port = count > 8 ? (int)number(words[8], "WORKER_PORT", 1, 65535) : port;
    if (count > 9) {
        function_size = strnlen(words[9], sizeof function - 2);
        memset(function, 0, sizeof function);
        memcpy(function, words[9], function_size);
    }
    if (mode == DRAIN)
        clients = 0;
    if (mode == BACKGROUND)
        workers = 0;
}

int main(int count, char **words)
{
    parse_arguments(count, words);
    payload = malloc((size_t)payload_size + 1);
    if (payload == NULL)
        fail("out of memory");
    memset(payload, 'x', (size_t)payload_size);
    poller = epoll_create1(0);
    if (poller < 0)
        fail("epoll_create1: %s", strerror(errno));

    struct connection **worker_connections = open_connections(workers, worker_port);
    struct connection **client_connections = open_connections(clients, port);
    if (mode == FOREGROUND || mode == RUN) {
        start_workers(worker_connections);
        run_until(&sleeping, workers);
    }
    double began = seconds(CLOCK_MONOTONIC), used = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (mode == DRAIN)
        start_workers(worker_connections);
    else
        start_clients(client_connections);
    run_until(&completed, jobs);
    printf("{\"jobs\": %ld, \"seconds\": %.6f, \"processor_seconds\": %.6f}\n", jobs, seconds(CLOCK_MONOTONIC) - began,
           seconds(CLOCK_PROCESS_CPUTIME_ID) - used);
    return 0;
}
