// A plot with linear and logarithmic axes, zoom, hover and keys. uPlot lays out the axes and follows
// the pointer; the series are drawn here, because each has an x of its own.
//
// A series: {xs, ys, style, label, line, points, width, alpha, mute}. `xs` grow; a null in `ys` is a
// gap; a mute series is not pointed at.

const zoomStep = 1.5;

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
  const factors = decades * 9 <= count * 1.2 ? [1, 2, 3, 4, 5, 6, 7, 8, 9] : decades * 3 <= count ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil(decades / count));
  const ticks = [];
  for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); ++power) {
    if (power % every) continue;
    for (const factor of factors) ticks.push(+(factor * 10 ** power).toPrecision(12));
  }
  return ticks.filter((tick) => tick >= min && tick <= max);
}

/** Room around the extremes; what a logarithm cannot show is left out. */
function padded(min, max, log) {
  if (!(min <= max)) return log ? [0.1, 10] : [0, 1];
  if (log) {
    const factor = Math.max((max / min) ** 0.04, 1.005);
    return [min / factor, max * factor];
  }
  const margin = (max - min) * 0.04 || Math.abs(max) * 0.05 || 1;
  return [min - margin, max + margin];
}

function extentOf(series, key, log) {
  let min = Infinity;
  let max = -Infinity;
  for (const one of series) {
    for (const value of one[key]) {
      if (value === null || (log && value <= 0)) continue;
      if (value < min) min = value;
      if (value > max) max = value;
    }
  }
  return padded(min, max, log);
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

function boxAround(x, y, halfWidth, halfHeight) {
  return { left: x - halfWidth, right: x + halfWidth, top: y - halfHeight, bottom: y + halfHeight };
}

function overlap(a, b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

class Chart {
  /** `describe(point)` gives {title, lines: [[name, text]]} for {series, index}. */
  constructor(label, describe) {
    this.describe = describe;
    this.series = [];
    this.axes = { x: { label: '', log: false, text: shortNumber }, y: { label: '', log: false, text: shortNumber } };
    this.view = null;
    this.point = null;
    this.highlight = null;
    this.makeElements(label);
    new ResizeObserver(() => this.resize()).observe(this.canvasHost);
  }

  makeElements(label) {
    this.ring = element('div', { class: 'chart-ring', hidden: true });
    this.tip = element('div', { class: 'chart-tip', hidden: true, 'aria-hidden': 'true' });
    this.canvasHost = element('div', { class: 'chart', tabindex: 0, role: 'application',
      'aria-roledescription': 'interactive chart',
      'aria-label': `${label}. Left and right arrows follow a series, up and down change the series, `
        + 'plus and minus zoom, shift with an arrow moves the view, zero shows everything.',
      onkeydown: (event) => this.onKey(event), onblur: () => this.leave() }, this.ring, this.tip);
    this.element = element('div', { class: 'chart-frame' }, this.canvasHost, this.zoomButtons());
  }

  zoomButtons() {
    const one = (text, label, action) => button(text, action, { 'aria-label': label, title: label });
    return element('div', { class: 'chart-buttons', role: 'group', 'aria-label': 'Zoom' },
      one('+', 'Zoom in', () => this.zoom(1 / zoomStep)), one('−', 'Zoom out', () => this.zoom(zoomStep)),
      one('←', 'Move left', () => this.pan(-0.2, 0)), one('→', 'Move right', () => this.pan(0.2, 0)),
      one('↑', 'Move up', () => this.pan(0, 0.2)), one('↓', 'Move down', () => this.pan(0, -0.2)),
      button('Show all', () => this.showAll()),
      element('span', { class: 'muted hint' }, 'Drag to zoom, double-click to show all.'));
  }

  /** Other axes begin with everything in view. */
  setAxes(axes) {
    this.axes = axes;
    this.view = null;
    this.rebuild();
  }

  setSeries(series) {
    this.series = series;
    this.leave();
    if (this.plot) this.applyView();
  }

  size() {
    const width = Math.max(240, Math.floor(this.canvasHost.clientWidth));
    return { width, height: Math.round(Math.min(440, Math.max(280, width * 0.55))) };
  }

  resize() {
    const { width, height } = this.size();
    if (this.plot && (this.plot.width !== width || this.plot.height !== height)) {
      this.plot.setSize({ width, height });
      this.placePoint();
    }
  }

  rebuild() {
    if (this.plot) this.plot.destroy();
    const options = {
      ...this.size(),
      legend: { show: false },
      scales: { x: this.scale('x'), y: this.scale('y') },
      axes: [this.axis('x'), this.axis('y')],
      series: [{}, { points: { show: false } }],
      cursor: {
        points: { show: false },
        drag: { x: true, y: true, uni: 24, dist: 6, setScale: false },
        bind: { dblclick: () => () => { this.showAll(); return null; } },
      },
      hooks: { draw: [(plot) => this.draw(plot)], setSelect: [(plot) => this.zoomToSelection(plot)] },
    };
    const { x, y } = this.shownView();
    this.plot = new uPlot(options, [x, [null, null]], this.canvasHost);
    this.plot.batch(() => {
      this.plot.setScale('x', { min: x[0], max: x[1] });
      this.plot.setScale('y', { min: y[0], max: y[1] });
    });
    this.follow(this.plot.over);
  }

  scale(key) {
    return { time: false, auto: false, distr: this.axes[key].log ? 3 : 1, range: (_, min, max) => [min, max] };
  }

  axis(key) {
    const axis = this.axes[key];
    const across = key === 'x';
    return {
      scale: key,
      label: axis.label,
      labelSize: 22,
      size: across ? 34 : 58,
      font: '12px system-ui, sans-serif',
      labelFont: '12px system-ui, sans-serif',
      stroke: () => cssColour('--muted'),
      grid: { stroke: () => cssColour('--grid'), width: 1 },
      ticks: { stroke: () => cssColour('--grid'), width: 1 },
      splits: (plot, _, min, max) => {
        const room = across ? plot.bbox.width / devicePixelRatio / 80 : plot.bbox.height / devicePixelRatio / 45;
        return (axis.log ? logTicks : linearTicks)(min, max, Math.max(2, room));
      },
      filter: (_, splits) => splits,
      values: (_, splits) => splits.map(axis.text),
    };
  }

  fullView() {
    const audible = this.series.filter((series) => series.xs.length > 0);
    return { x: extentOf(audible, 'xs', this.axes.x.log), y: extentOf(audible, 'ys', this.axes.y.log) };
  }

  shownView() {
    return this.view ?? this.fullView();
  }

  applyView() {
    const { x, y } = this.shownView();
    this.plot.batch(() => {
      this.plot.setData([x, [null, null]], false);
      this.plot.setScale('x', { min: x[0], max: x[1] });
      this.plot.setScale('y', { min: y[0], max: y[1] });
    });
    this.plot.redraw();
    this.placePoint();
  }

  // Zoom and pan work on what is seen, so on the logarithms of a logarithmic axis.

  transformed(key, change) {
    const [min, max] = this.shownView()[key];
    if (!this.axes[key].log) return change(min, max);
    return change(Math.log(min), Math.log(max)).map(Math.exp);
  }

  zoom(factor) {
    const change = (min, max) => {
      const middle = (min + max) / 2;
      const half = (max - min) / 2 * factor;
      return [middle - half, middle + half];
    };
    this.view = { x: this.transformed('x', change), y: this.transformed('y', change) };
    this.applyView();
  }

  pan(right, up) {
    const by = (share) => (min, max) => [min + share * (max - min), max + share * (max - min)];
    this.view = { x: this.transformed('x', by(right)), y: this.transformed('y', by(up)) };
    this.applyView();
  }

  showAll() {
    this.view = null;
    this.applyView();
  }

  zoomToSelection(plot) {
    const { left, top, width, height } = plot.select;
    if (width < 4 && height < 4) return;
    const x = [plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')];
    const y = [plot.posToVal(top + height, 'y'), plot.posToVal(top, 'y')];
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    if (!(x[0] < x[1] && y[0] < y[1])) return;
    this.view = { x, y };
    this.leave();
    this.applyView();
  }

  // Drawing.

  draw(plot) {
    const context = plot.ctx;
    const { left, top, width, height } = plot.bbox;
    context.save();
    context.beginPath();
    context.rect(left, top, width, height);
    context.clip();
    for (const series of this.series) this.drawSeries(plot, context, series);
    context.restore();
    this.drawCaptions(plot, context);
  }

  drawSeries(plot, context, series) {
    const ratio = devicePixelRatio;
    const dimmed = this.highlight !== null && !this.highlight(series);
    context.globalAlpha = dimmed ? 0.12 : series.alpha ?? 1;
    context.strokeStyle = context.fillStyle = colourOf(series.style);
    context.lineWidth = (series.width ?? 1.5) * ratio;
    context.lineJoin = 'round';
    context.setLineDash(series.style.dash.map((length) => length * ratio));
    if (series.line) context.stroke(this.linePath(plot, series));
    context.setLineDash([]);
    if (series.points) this.drawPoints(plot, context, series, ratio);
    context.globalAlpha = 1;
  }

  linePath(plot, series) {
    const path = new Path2D();
    const [toX, toY] = this.transforms(plot);
    let pen = false;
    for (let i = 0; i < series.xs.length; ++i) {
      const y = series.ys[i] === null ? NaN : toY(series.ys[i]);
      const x = toX(series.xs[i]);
      if (!Number.isFinite(x) || !Number.isFinite(y)) {
        pen = false;
        continue;
      }
      if (pen) path.lineTo(x, y);
      else path.moveTo(x, y);
      pen = true;
    }
    return path;
  }

  drawPoints(plot, context, series, ratio) {
    const [toX, toY] = this.transforms(plot);
    const places = series.points === 'last' ? [series.xs.length - 1] : series.xs.keys();
    for (const i of places) {
      if (i < 0 || series.ys[i] === null) continue;
      const path = markerPath(series.style.marker, toX(series.xs[i]), toY(series.ys[i]), (series.radius ?? 3.5) * ratio);
      if (series.hollow) {
        context.lineWidth = 1.8 * ratio;
        context.stroke(path);
      } else {
        context.fill(path);
      }
    }
  }

  /** Names beside their points, each where it covers neither a point nor another name. */
  drawCaptions(plot, context) {
    const captioned = this.series.filter((series) => series.caption);
    if (captioned.length === 0) return;
    const ratio = devicePixelRatio;
    const [toX, toY] = this.transforms(plot);
    const { left, top, width, height } = plot.bbox;
    const inside = (box) => box.left >= left && box.right <= left + width && box.top >= top && box.bottom <= top + height;
    const places = captioned.map((series) => ({ series, x: toX(series.xs[0]), y: toY(series.ys[0]) }))
      .filter(({ x, y }) => inside({ left: x, right: x, top: y, bottom: y }));
    const taken = places.map(({ x, y }) => boxAround(x, y, 7 * ratio, 7 * ratio));
    context.font = `${12 * ratio}px system-ui, sans-serif`;
    context.fillStyle = cssColour('--text');
    context.textBaseline = 'middle';
    context.textAlign = 'center';
    for (const { series, x, y } of places) {
      const half = context.measureText(series.caption).width / 2;
      const aside = half + 10 * ratio;
      const above = 16 * ratio;
      const free = [[aside, 0], [-aside, 0], [0, -above], [0, above], [aside, -above], [aside, above], [-aside, -above], [-aside, above]]
        .map(([right, down]) => boxAround(x + right, y + down, half, 7 * ratio))
        .find((box) => inside(box) && !taken.some((other) => overlap(box, other)));
      if (!free) continue;
      taken.push(free);
      context.fillText(series.caption, (free.left + free.right) / 2, (free.top + free.bottom) / 2);
    }
  }

  /** From values to pixels of the canvas, for thousands of points at a time. */
  transforms(plot) {
    const { left, top, width, height } = plot.bbox;
    const along = (key, offset, length, flipped) => {
      const log = this.axes[key].log;
      const scale = plot.scales[key];
      const [min, max] = log ? [Math.log(scale.min), Math.log(scale.max)] : [scale.min, scale.max];
      const factor = (flipped ? -length : length) / (max - min);
      const start = flipped ? offset + length : offset;
      return log ? (value) => start + (Math.log(value) - min) * factor : (value) => start + (value - min) * factor;
    };
    return [along('x', left, width, false), along('y', top, height, true)];
  }

  // Pointing.

  follow(over) {
    const point = (event) => {
      const box = over.getBoundingClientRect();
      this.setPoint(this.nearest(event.clientX - box.left, event.clientY - box.top, 40));
    };
    over.addEventListener('pointermove', point);
    over.addEventListener('pointerdown', point);
    over.addEventListener('pointerleave', (event) => {
      if (event.pointerType === 'mouse') this.leave();
    });
  }

  /** The point nearest to a place of the plot, at most `reach` pixels away; else null. */
  nearest(left, top, reach) {
    let best = null;
    let distance = reach;
    const x = this.plot.posToVal(left, 'x');
    for (const series of this.series) {
      if (series.mute) continue;
      const start = lowerBound(series.xs, x);
      for (const step of [-1, 1]) {
        for (let i = step < 0 ? start - 1 : start; i >= 0 && i < series.xs.length; i += step) {
          const away = Math.abs(this.plot.valToPos(series.xs[i], 'x') - left);
          if (away > distance) break;
          if (series.ys[i] === null) continue;
          const length = Math.hypot(away, this.plot.valToPos(series.ys[i], 'y') - top);
          if (length < distance) {
            distance = length;
            best = { series, index: i };
          }
        }
      }
    }
    return best;
  }

  setPoint(point) {
    this.point = point;
    this.placePoint();
  }

  leave() {
    this.setPoint(null);
  }

  placePoint() {
    this.ring.hidden = this.tip.hidden = true;
    if (!this.point || !this.plot) return;
    const { series, index } = this.point;
    const over = this.plot.over;
    const left = this.plot.valToPos(series.xs[index], 'x');
    const top = this.plot.valToPos(series.ys[index], 'y');
    if (!(left >= 0 && left <= over.clientWidth && top >= 0 && top <= over.clientHeight)) return;
    this.fillTip(this.describe(this.point));
    this.ring.hidden = this.tip.hidden = false;
    const x = over.offsetLeft + left;
    const y = over.offsetTop + top;
    this.ring.style.transform = `translate(${x}px, ${y}px)`;
    this.ring.style.borderColor = colourOf(series.style);
    this.placeTip(x, y);
  }

  placeTip(x, y) {
    const width = this.tip.offsetWidth;
    const room = this.canvasHost.clientWidth;
    const left = x + 14 + width <= room ? x + 14 : Math.max(0, x - 14 - width);
    const top = Math.max(0, y - this.tip.offsetHeight - 10);
    this.tip.style.transform = `translate(${Math.min(left, Math.max(0, room - width))}px, ${top}px)`;
  }

  fillTip({ title, lines }) {
    const rows = lines.map(([name, text]) => [element('dt', {}, name), element('dd', {}, text)]);
    this.tip.replaceChildren(element('strong', {}, title), element('dl', {}, rows));
  }

  // Keys.

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = event.shiftKey ? this.panKeys()[event.key] ?? this.keys()[event.key] : this.keys()[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  keys() {
    return {
      ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1),
      ArrowUp: () => this.changeSeries(-1), ArrowDown: () => this.changeSeries(1),
      '+': () => this.zoom(1 / zoomStep), '=': () => this.zoom(1 / zoomStep), '-': () => this.zoom(zoomStep),
      0: () => this.showAll(), Escape: () => this.leave(),
    };
  }

  panKeys() {
    return { ArrowLeft: () => this.pan(-0.2, 0), ArrowRight: () => this.pan(0.2, 0),
      ArrowUp: () => this.pan(0, 0.2), ArrowDown: () => this.pan(0, -0.2) };
  }

  /** To the next point of the series that has a number, or to the first point of all. */
  step(by) {
    if (!this.point) {
      this.changeSeries(1);
      return;
    }
    const { series, index } = this.point;
    let next = index + by;
    while (next >= 0 && next < series.ys.length && series.ys[next] === null) next += by;
    if (next >= 0 && next < series.ys.length) this.setPoint({ series, index: next });
    this.tell();
  }

  changeSeries(by) {
    const audible = this.series.filter((series) => !series.mute && series.ys.some((y) => y !== null));
    if (audible.length === 0) return;
    const from = this.point ? audible.indexOf(this.point.series) : -1;
    const series = audible[(from + by + audible.length) % audible.length];
    const x = this.point ? this.point.series.xs[this.point.index] : Infinity;
    let index = Math.min(lowerBound(series.xs, x), series.xs.length - 1);
    while (index > 0 && series.ys[index] === null) --index;
    this.setPoint({ series, index });
    this.tell();
  }

  tell() {
    if (!this.point) return;
    const { title, lines } = this.describe(this.point);
    announce([title, ...lines.map(([name, text]) => `${name} ${text}`)].join(', '));
  }

  setHighlight(test) {
    this.highlight = test;
    if (this.plot) this.plot.redraw(false);
  }
}
