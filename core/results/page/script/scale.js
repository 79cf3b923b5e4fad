// Axes: where their ticks stand and what they span.

/** Ticks for people: multiples of 1, 2 or 5 times a power of ten; about `count`. */
function linearTicks(min, max, count) {
  const rough = (max - min) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  const ticks = [];
  for (let i = Math.ceil(min / step); i * step <= max; ++i) ticks.push(+(i * step).toPrecision(12));
  return ticks;
}

function logTicks(min, max, count) {
  const decades = Math.log10(max / min);
  if (decades < 0.7) return linearTicks(min, max, count);
  const factors =
    decades * 9 <= count * 1.2
      ? [1, 2, 3, 4, 5, 6, 7, 8, 9]
      : decades * 3 <= count
        ? [1, 2, 5]
        : [1];
  const every = Math.max(1, Math.ceil(decades / count));
  const ticks = [];
  for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); ++power) {
    if (power % every) continue;
    for (const factor of factors) ticks.push(+(factor * 10 ** power).toPrecision(12));
  }
  return ticks.filter((tick) => tick >= min && tick <= max);
}

/** Room around the extremes: a share of what is seen between them. */
function padded(min, max, log, share) {
  if (!(min <= max)) return log ? [0.1, 10] : [0, 1];
  if (log) {
    const factor = Math.max((max / min) ** share, 1.005);
    return [min / factor, max * factor];
  }
  const margin = (max - min) * share || Math.abs(max) * 0.05 || 1;
  return [min - margin, max + margin];
}

/** From the lowest to the highest value under the keys that the axis can show. */
function extentOf(series, keys, log, share = 0.04) {
  let min = Infinity;
  let max = -Infinity;
  for (const values of series.flatMap((one) => keys.map((key) => one[key] ?? []))) {
    for (const value of values) {
      if (value === null || (log && value <= 0)) continue;
      if (value < min) min = value;
      if (value > max) max = value;
    }
  }
  return padded(min, max, log, share);
}

/** The first place at which sorted numbers reach a value. */
function lowerBound(values, wanted) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
