// Decodes MessagePack, one of the formats of tasks.
import { ByteReader } from "./bytereader.js";

const TIMESTAMP = -1; // the type of the only extension that MessagePack defines

/** The value of bytes; an error if they are not exactly one value. */
export function decodeMsgpack(bytes) {
  return new ByteReader(bytes).whole(value);
}

function value(reader) {
  const type = reader.number(1);
  if (type < 0x80) return type;
  if (type < 0x90) return map(reader, type & 0x0f);
  if (type < 0xa0) return reader.list(type & 0x0f, value);
  if (type < 0xc0) return reader.text(type & 0x1f);
  if (type >= 0xe0) return type - 0x100;
  const read = TYPES[type];
  if (read === undefined) throw new Error("not MessagePack");
  return read(reader);
}

const TYPES = {
  0xc0: () => null,
  0xc2: () => false,
  0xc3: () => true,
  0xca: (reader) => reader.float(4),
  0xcb: (reader) => reader.float(8),
  0xcf: (reader) => reader.number(8),
  0xd3: (reader) => reader.signed(8),
  0xdc: (reader) => reader.list(reader.number(2), value),
  0xdd: (reader) => reader.list(reader.number(4), value),
  0xde: (reader) => map(reader, reader.number(2)),
  0xdf: (reader) => map(reader, reader.number(4)),
};
[1, 2, 4].forEach((width, index) => {
  TYPES[0xc4 + index] = (reader) => reader.bytes(reader.number(width));
  TYPES[0xc7 + index] = (reader) => extension(reader, reader.number(width));
  TYPES[0xcc + index] = (reader) => reader.number(width);
  TYPES[0xd0 + index] = (reader) => reader.signed(width);
  TYPES[0xd9 + index] = (reader) => reader.text(reader.number(width));
});
[1, 2, 4, 8, 16].forEach((size, index) => {
  TYPES[0xd4 + index] = (reader) => extension(reader, size);
});

function map(reader, size) {
  return Object.fromEntries(reader.list(size, () => [String(value(reader)), value(reader)]));
}

function extension(reader, size) {
  const type = reader.signed(1);
  if (type !== TIMESTAMP) return reader.bytes(size);
  if (size === 4) return iso(reader.number(4));
  if (size === 8) {
    const [high, low] = [reader.number(4), reader.number(4)];
    return iso((high & 3) * 2 ** 32 + low); // the upper 30 bits are nanoseconds
  }
  reader.number(4);
  return iso(reader.signed(8));
}

function iso(seconds) {
  return new Date(seconds * 1000).toISOString();
}
