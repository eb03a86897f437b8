// Numbers, times and sizes, formatted for display.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const clock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const day = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });

export const NONE = "–";

/** 1234567 → "1,234,567"; ten million and more → "12.3M". */
export function count(number) {
  if (number === null || number === undefined) return NONE;
  return number >= 1e7 ? compact.format(number) : whole.format(number);
}

/** For axes: 1500 → "1.5K". */
export function short(number) {
  return number !== 0 && Math.abs(number) < 1 ? String(Number(number.toPrecision(2))) : compact.format(number);
}

/** Per second. */
export function rate(number) {
  if (number === null || number === undefined) return NONE;
  if (number === 0) return "0";
  if (number < 0.05) return "<0.1";
  return number < 10 ? number.toFixed(1) : count(Math.round(number));
}

const SPANS = [
  [86400, "d", 3600, "h"],
  [3600, "h", 60, "m"],
  [60, "m", 1, "s"],
];

/** Seconds: 0.0004 → "0.4 ms", 75 → "1m 15s". */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return NONE;
  if (seconds < 0) return `-${duration(-seconds)}`;
  if (seconds === 0) return "0 s";
  if (seconds < 0.00095) return `${(seconds * 1000).toFixed(2)} ms`;
  if (seconds < 0.00995) return `${(seconds * 1000).toFixed(1)} ms`;
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  for (const [large, largeName, small, smallName] of SPANS) {
    if (seconds >= large) {
      const rest = Math.floor((seconds % large) / small);
      return `${Math.floor(seconds / large)}${largeName}${rest ? ` ${rest}${smallName}` : ""}`;
    }
  }
  return "1m";
}

const SIZES = ["bytes", "KiB", "MiB", "GiB", "TiB"];

export function size(bytes) {
  if (bytes === null || bytes === undefined) return NONE;
  if (bytes === 1) return "1 byte";
  let amount = bytes;
  let unit = 0;
  while (amount >= 1024 && unit < SIZES.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  return `${unit && amount < 100 ? amount.toFixed(1) : Math.round(amount)} ${SIZES[unit]}`;
}

/** The time of day, with the date unless it is today. */
export function dateTime(seconds) {
  if (seconds === null || seconds === undefined) return NONE;
  const date = new Date(seconds * 1000);
  const today = date.toDateString() === new Date().toDateString();
  return today ? clock.format(date) : `${day.format(date)}, ${clock.format(date)}`;
}

export function timeOfDay(seconds) {
  return clock.format(new Date(seconds * 1000));
}

/** "1 job", "2 jobs". */
export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}
