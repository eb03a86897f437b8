/*
 * Gearman's packets for a load generator, which defines what it does with one: `handle_packet`.
 *
 * A packet of the protocol is a header of 12 bytes (magic "\0REQ" or "\0RES", type, size of the body; the numbers are
 * big endian) and a body of fields with a zero byte between them.
 */
#include "load_connection.h"

#define HEADER_SIZE 12

enum packet_type {
    CAN_DO = 1, PRE_SLEEP = 4, NOOP = 6, SUBMIT_JOB = 7, JOB_CREATED = 8, GRAB_JOB = 9, NO_JOB = 10, JOB_ASSIGN = 11,
    WORK_COMPLETE = 13, SUBMIT_JOB_BG = 18, ERROR = 19,
};

/* Queue a request whose body is two byte strings, one after the other. */
static void send_packet(struct connection *connection, enum packet_type type, const void *first, size_t first_size,
                        const void *second, size_t second_size)
{
    uint32_t numbers[2] = {htonl(type), htonl((uint32_t)(first_size + second_size))};
    reserve(&connection->output, HEADER_SIZE + first_size + second_size);
    append(&connection->output, "\0REQ", 4);
    append(&connection->output, numbers, sizeof numbers);
    if (first_size)
        append(&connection->output, first, first_size);
    if (second_size)
        append(&connection->output, second, second_size);
}

static void send_request(struct connection *connection, enum packet_type type)
{
    send_packet(connection, type, NULL, 0, NULL, 0);
}

/* The size of a field, with the zero byte at its end. */
static size_t field_size(const unsigned char *body, size_t size)
{
    const unsigned char *end = memchr(body, 0, size);
    if (end == NULL)
        fail("the server sent a packet with too few fields");
    return (size_t)(end - body) + 1;
}

static void handle_packet(struct connection *connection, uint32_t type, const unsigned char *body, size_t size);

/* Take whole packets from the input buffer. */
static void handle_input(struct connection *connection)
{
    struct buffer *input = &connection->input;
    while (input->end - input->start >= HEADER_SIZE) {
        const unsigned char *header = input->bytes + input->start;
        uint32_t numbers[2];
        if (memcmp(header, "\0RES", 4) != 0)
            fail("the server sent something that is not a Gearman packet");
        memcpy(numbers, header + 4, sizeof numbers);
        size_t size = ntohl(numbers[1]);
        if (input->end - input->start - HEADER_SIZE < size)
            break;
        input->start += HEADER_SIZE + size;
        handle_packet(connection, ntohl(numbers[0]), header + HEADER_SIZE, size);
    }
}
