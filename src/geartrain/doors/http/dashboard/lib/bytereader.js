// Reads numbers, texts and lists from bytes, in network byte order.
import { textOfBytes } from "./text.js";

const DEEPEST = 100;

export class ByteReader {
  constructor(bytes) {
    this.data = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
    this.depth = 0;
  }

  /** What `read(reader)` returns, if it reads all bytes. */
  whole(read) {
    const value = read(this);
    if (this.at !== this.data.length) throw new Error("more bytes than one value");
    return value;
  }

  /** An unsigned number of 1, 2, 4 or 8 bytes; one that JavaScript cannot represent is a text of digits. */
  number(width) {
    return exact(this.#read(width, { 1: "getUint8", 2: "getUint16", 4: "getUint32", 8: "getBigUint64" }));
  }

  signed(width) {
    return exact(this.#read(width, { 1: "getInt8", 2: "getInt16", 4: "getInt32", 8: "getBigInt64" }));
  }

  float(width) {
    return this.#read(width, { 4: "getFloat32", 8: "getFloat64" });
  }

  halfFloat() {
    const bits = this.number(2);
    const [exponent, fraction] = [(bits >> 10) & 0x1f, bits & 0x3ff];
    const size = exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15);
    const value = exponent === 31 ? (fraction ? NaN : Infinity) : size;
    return bits & 0x8000 ? -value : value;
  }

  /** Bytes as the API writes them. */
  bytes(size) {
    return textOfBytes(this.#take(size));
  }

  text(size) {
    return new TextDecoder("utf-8", { fatal: true }).decode(this.#take(size));
  }

  list(size, read) {
    // Every entry has a byte at least: a false size must not fill the memory.
    if (size > this.data.length - this.at) throw new Error("not enough bytes");
    this.depth += 1;
    if (this.depth > DEEPEST) throw new Error("too many levels");
    const list = [];
    for (let index = 0; index < size; index += 1) list.push(read(this));
    this.depth -= 1;
    return list;
  }

  /** Whether the next byte is this one, which is then read. */
  skip(byte) {
    const found = this.data[this.at] === byte;
    if (found) this.at += 1;
    return found;
  }

  #read(width, methods) {
    this.at += width;
    return this.view[methods[width]](this.at - width);
  }

  #take(size) {
    if (size > this.data.length - this.at) throw new Error("not enough bytes");
    this.at += size;
    return this.data.subarray(this.at - size, this.at);
  }
}

function exact(number) {
  if (typeof number === "number") return number;
  return Number.isSafeInteger(Number(number)) ? Number(number) : String(number);
}
