// Series on the canvas of a plot.
//
// A series: {xs, ys, style, line, points, width, alpha, mute} and, for a band, {low, high}. `xs`
// grow; a null in `ys` is a gap; `points` is "all", "last" or null; `whiskers` are intervals {x, y}
// around the first point; a mute series is not pointed at.

/** What drawing needs of a plot: its context, the box of its axes and from values to pixels. */
function paperOf(plot, axes) {
  const { left, top, width, height } = plot.bbox;
  const along = (key, offset, length, flipped) => {
    const { log } = axes[key];
    const { min: low, max: high } = plot.scales[key];
    const [min, max] = log ? [Math.log(low), Math.log(high)] : [low, high];
    const factor = (flipped ? -length : length) / (max - min);
    const start = flipped ? offset + length : offset;
    return log
      ? (value) => start + (Math.log(value) - min) * factor
      : (value) => start + (value - min) * factor;
  };
  return {
    context: plot.ctx,
    ratio: devicePixelRatio,
    box: { left, top, right: left + width, bottom: top + height },
    toX: along('x', left, width, false),
    toY: along('y', top, height, true),
  };
}

/** Draws within the axes alone. */
function clipped({ context, box }, draw) {
  context.save();
  context.beginPath();
  context.rect(box.left, box.top, box.right - box.left, box.bottom - box.top);
  context.clip();
  draw();
  context.restore();
}

/** Pixels [x, y…] of values that lie side by side without a gap. */
function stretchesOf({ toX, toY }, series, keys) {
  const stretches = [[]];
  series.xs.forEach((x, i) => {
    const place = [
      toX(x),
      ...keys.map((key) => (series[key][i] === null ? NaN : toY(series[key][i]))),
    ];
    if (place.every(Number.isFinite)) stretches[stretches.length - 1].push(place);
    else if (stretches[stretches.length - 1].length > 0) stretches.push([]);
  });
  return stretches;
}

function linePath(paper, series) {
  const path = new Path2D();
  for (const stretch of stretchesOf(paper, series, ['ys'])) {
    stretch.forEach(([x, y], i) => path[i ? 'lineTo' : 'moveTo'](x, y));
  }
  return path;
}

/** Along the lowest values and back along the highest. */
function bandPath(paper, series) {
  const path = new Path2D();
  for (const stretch of stretchesOf(paper, series, ['low', 'high'])) {
    stretch.forEach(([x, low], i) => path[i ? 'lineTo' : 'moveTo'](x, low));
    for (const [x, , high] of stretch.reverse()) path.lineTo(x, high);
    path.closePath();
  }
  return path;
}

function drawSeries(paper, series, isDimmed) {
  const { context, ratio } = paper;
  context.strokeStyle = context.fillStyle = colourOf(series.style);
  context.globalAlpha = isDimmed ? 0.03 : 0.15;
  if (series.low) context.fill(bandPath(paper, series));
  context.globalAlpha = isDimmed ? 0.12 : (series.alpha ?? 1);
  context.lineWidth = (series.width ?? 1.5) * ratio;
  context.lineJoin = 'bevel'; // of thousands of joins nothing dearer
  context.setLineDash(series.style.dash.map((length) => length * ratio));
  if (series.line) context.stroke(linePath(paper, series));
  context.setLineDash([]);
  if (series.whiskers) drawWhiskers(paper, series);
  if (series.points) drawPoints(paper, series);
  context.globalAlpha = 1;
}

/** Intervals around the first point. */
function drawWhiskers({ context, ratio, toX, toY }, { xs: [x], ys: [y], whiskers }) {
  context.lineWidth = ratio;
  context.beginPath();
  if (whiskers.x) {
    context.moveTo(toX(whiskers.x[0]), toY(y));
    context.lineTo(toX(whiskers.x[1]), toY(y));
  }
  if (whiskers.y) {
    context.moveTo(toX(x), toY(whiskers.y[0]));
    context.lineTo(toX(x), toY(whiskers.y[1]));
  }
  context.stroke();
}

function drawPoints({ context, ratio, toX, toY }, series) {
  const places = series.points === 'last' ? [series.xs.length - 1] : series.xs.keys();
  for (const i of places) {
    if (i < 0 || series.ys[i] === null) continue;
    const path = markerPath(
      series.style.marker,
      toX(series.xs[i]),
      toY(series.ys[i]),
      (series.radius ?? 3.5) * ratio,
    );
    if (series.hollow) {
      context.lineWidth = 1.8 * ratio;
      context.stroke(path);
    } else {
      context.fill(path);
    }
  }
}

function boxAround(x, y, halfWidth, halfHeight) {
  return { left: x - halfWidth, right: x + halfWidth, top: y - halfHeight, bottom: y + halfHeight };
}

function overlap(a, b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

const isInside = (inner, outer) =>
  inner.left >= outer.left &&
  inner.right <= outer.right &&
  inner.top >= outer.top &&
  inner.bottom <= outer.bottom;

/** The places beside, above and below a point where its name may stand, the best first. */
function captionBoxes(x, y, half, ratio) {
  const aside = half + 10 * ratio;
  const above = 16 * ratio;
  return [
    [aside, 0],
    [-aside, 0],
    [0, -above],
    [0, above],
    [aside, -above],
    [aside, above],
    [-aside, -above],
    [-aside, above],
  ].map(([right, down]) => boxAround(x + right, y + down, half, 7 * ratio));
}

/** Names beside their points, each where it covers neither a point nor another name. */
function drawCaptions({ context, ratio, box, toX, toY }, captioned) {
  const places = captioned
    .map((series) => ({ caption: series.caption, x: toX(series.xs[0]), y: toY(series.ys[0]) }))
    .filter(({ x, y }) => isInside(boxAround(x, y, 0, 0), box));
  const taken = places.map(({ x, y }) => boxAround(x, y, 7 * ratio, 7 * ratio));
  Object.assign(context, {
    font: `${12 * ratio}px system-ui, sans-serif`,
    fillStyle: cssColour('--text'),
    strokeStyle: cssColour('--card'),
    lineWidth: 4 * ratio,
    textBaseline: 'middle',
    textAlign: 'center',
  });
  for (const { caption, x, y } of places) {
    const free = captionBoxes(x, y, context.measureText(caption).width / 2, ratio).find(
      (one) => isInside(one, box) && !taken.some((other) => overlap(one, other)),
    );
    if (!free) continue;
    taken.push(free);
    const text = [caption, (free.left + free.right) / 2, (free.top + free.bottom) / 2];
    context.strokeText(...text);
    context.fillText(...text);
  }
}
