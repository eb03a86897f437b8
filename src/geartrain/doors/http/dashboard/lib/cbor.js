// Decodes CBOR, one of the formats of tasks.
import { ByteReader } from "./bytereader.js";

const UNTIL_BREAK = -1; // the length of a value whose end is marked
const WIDTHS = { 24: 1, 25: 2, 26: 4, 27: 8 };

/** The value of bytes; an error if they are not exactly one value. */
export function decodeCbor(bytes) {
  return new ByteReader(bytes).whole(value);
}

/** By major type; each gets the reader, the argument, and the five bits that the argument came from. */
const TYPES = [
  (reader, argument) => argument,
  (reader, argument) => (typeof argument === "number" ? -1 - argument : String(-1n - BigInt(argument))),
  (reader, argument) => reader.bytes(fixed(argument)),
  (reader, argument) => reader.text(fixed(argument)),
  (reader, argument) => items(reader, argument, value),
  (reader, argument) => Object.fromEntries(items(reader, argument, pair)),
  (reader) => value(reader), // a tag, such as that of a date, which is a text
  simple,
];

function value(reader) {
  const first = reader.number(1);
  const bits = first & 0x1f;
  const isFloat = first >> 5 === 7;
  return TYPES[first >> 5](reader, isFloat ? bits : argumentOf(reader, bits), bits);
}

function argumentOf(reader, bits) {
  if (bits < 24) return bits;
  if (bits === 31) return UNTIL_BREAK;
  if (WIDTHS[bits] === undefined) throw new Error("not CBOR");
  return reader.number(WIDTHS[bits]);
}

function fixed(argument) {
  if (argument === UNTIL_BREAK) throw new Error("bytes and texts in parts are not supported");
  return argument;
}

function items(reader, size, read) {
  if (size !== UNTIL_BREAK) return reader.list(size, read);
  const all = [];
  while (!reader.skip(0xff)) all.push(read(reader));
  return all;
}

function pair(reader) {
  return [String(value(reader)), value(reader)];
}

function simple(reader, bits) {
  if (bits === 20 || bits === 21) return bits === 21;
  if (bits === 22 || bits === 23) return null;
  if (bits === 25) return reader.halfFloat();
  if (bits === 26 || bits === 27) return reader.float(WIDTHS[bits]);
  throw new Error("not CBOR");
}
