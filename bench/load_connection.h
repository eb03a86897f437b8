/*
 * Connections of a load generator: sockets on one epoll, each with an input and an output buffer. gearman_load.c and
 * latency_load.c are one file each, which includes this one and defines PROGRAM, its name for messages.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define READ_SIZE 65536       /* free bytes in an input buffer before each read */
#define EVENTS 256            /* connections that one epoll_wait may report */
#define STALL_MILLISECONDS 20000 /* without any packet for this long, the run is an error */

/* Bytes from start to end are in use. */
struct buffer {
    unsigned char *bytes;
    size_t start, end, size;
};

struct connection {
    int socket;
    bool awaits_writable; /* the kernel's buffer is full: epoll reports when it is not */
    struct buffer input, output;
    long oldest, newest; /* of latency_load: the first and the last request without an answer; -1 for none */
};

static int poller;

static _Noreturn void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, PROGRAM ": ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(1);
}

static double seconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Make room for `count` bytes at the end. Bytes in use move to the front first, and the buffer doubles if it must. */
static void reserve(struct buffer *buffer, size_t count)
{
    if (buffer->start == buffer->end)
        buffer->start = buffer->end = 0;
    if (buffer->size - buffer->end >= count)
        return;
    if (buffer->start > 0) {
        memmove(buffer->bytes, buffer->bytes + buffer->start, buffer->end - buffer->start);
        buffer->end -= buffer->start;
        buffer->start = 0;
    }
    if (buffer->size - buffer->end >= count)
        return;
    buffer->size = 2 * (buffer->end + count);
    buffer->bytes = realloc(buffer->bytes, buffer->size);
    if (buffer->bytes == NULL)
        fail("out of memory");
}

static void append(struct buffer *buffer, const void *bytes, size_t count)
{
    memcpy(buffer->bytes + buffer->end, bytes, count);
    buffer->end += count;
}

static void await(struct connection *connection, bool writable)
{
    struct epoll_event event = {.events = EPOLLIN | (writable ? EPOLLOUT : 0), .data.ptr = connection};
    if (writable == connection->awaits_writable)
        return;
    if (epoll_ctl(poller, EPOLL_CTL_MOD, connection->socket, &event))
        fail("epoll_ctl: %s", strerror(errno));
    connection->awaits_writable = writable;
}

/* Write what is queued; what does not fit waits until the socket is writable. */
static void flush(struct connection *connection)
{
    struct buffer *output = &connection->output;
    while (output->start < output->end) {
        ssize_t written = write(connection->socket, output->bytes + output->start, output->end - output->start);
        if (written < 0 && errno == EAGAIN)
            break;
        if (written < 0)
            fail("cannot write to the server: %s", strerror(errno));
        output->start += (size_t)written;
    }
    await(connection, output->start < output->end);
}

static struct connection *open_connection(int to)
{
    struct connection *connection = calloc(1, sizeof *connection);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)to)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    int yes = 1;

    if (connection == NULL)
        fail("out of memory");
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connection->oldest = connection->newest = -1;
    connection->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (connection->socket < 0)
        fail("cannot open a socket: %s", strerror(errno));
    if (connect(connection->socket, (struct sockaddr *)&address, sizeof address))
        fail("cannot connect to 127.0.0.1:%d: %s", to, strerror(errno));
    setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    fcntl(connection->socket, F_SETFL, O_NONBLOCK);
    if (epoll_ctl(poller, EPOLL_CTL_ADD, connection->socket, &event))
        fail("epoll_ctl: %s", strerror(errno));
    return connection;
}

/* Read until the socket is empty. */
static void read_input(struct connection *connection)
{
    struct buffer *input = &connection->input;
    for (;;) {
        reserve(input, READ_SIZE);
        size_t room = input->size - input->end;
        ssize_t count = read(connection->socket, input->bytes + input->end, room);
        if (count < 0 && errno == EAGAIN)
            return;
        if (count < 0)
            fail("cannot read from the server: %s", strerror(errno));
        if (count == 0)
            fail("the server closed a connection");
        input->end += (size_t)count;
        if ((size_t)count < room) /* there was no more: spare the read that would only say EAGAIN */
            return;
    }
}

static struct connection **open_connections(long count, int to)
{
    struct connection **connections = calloc((size_t)count + 1, sizeof *connections);
    if (connections == NULL)
        fail("out of memory");
    for (long i = 0; i < count; i++)
        connections[i] = open_connection(to);
    return connections;
}

static long number(const char *text, const char *name, long least, long most)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end != '\0' || value < least || value > most) {
        fprintf(stderr, PROGRAM ": %s must be a number from %ld to %ld, not \"%s\"\n", name, least, most, text);
        exit(2);
    }
    return value;
}
