// Axes with round numbers.

const STEPS = [1, 2, 2.5, 5, 10];

/** Ticks from 0 to at least `highest`, about `target` of them, at round values. */
export function ticksUpTo(highest, target = 4, integers = false, least = 1) {
  const reach = Math.max(highest, least) || 1; // an axis needs a height, even if all values are 0
  const rough = reach / target;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = STEPS.find((factor) => factor * power >= rough * 0.999) * power;
  if (integers) step = Math.max(1, Math.ceil(step));
  const ticks = [];
  for (let index = 0; ; index += 1) {
    ticks.push(Number((index * step).toPrecision(12)));
    if (index * step >= reach) return ticks;
  }
}

const SPANS = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];

/** Round times between two times, at most `most` of them. */
export function timesBetween(from, until, most) {
  const span = SPANS.find((seconds) => (until - from) / seconds <= most) ?? 7200;
  const times = [];
  for (let at = Math.ceil(from / span) * span; at <= until; at += span) times.push(at);
  return times;
}

/** At most `most` points: neighbours are averaged, so that there is about one point per pixel. */
export function thinned(points, most) {
  const group = Math.ceil(points.length / most);
  if (group <= 1) return points;
  const thin = [];
  // Groups begin at fixed times, so that the line does not jitter when a point is added.
  let bucket = [];
  let current = null;
  for (const point of points) {
    const name = Math.floor(point.at / group);
    if (name !== current && bucket.length) {
      thin.push(average(bucket));
      bucket = [];
    }
    current = name;
    bucket.push(point);
  }
  if (bucket.length) thin.push(average(bucket));
  return thin;
}

function average(points) {
  const mean = {};
  for (const name of Object.keys(points[0])) {
    const values = points.map((point) => point[name]).filter((value) => value !== null);
    mean[name] = values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
  }
  return mean;
}
