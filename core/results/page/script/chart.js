// A plot with linear and logarithmic axes, zoom, hover and keys. uPlot lays out the axes and
// follows the pointer; drawing.js draws the series, because each has an x of its own.

const zoomStep = 1.5;

/** The nearest point from one of a series on, as long as one can be nearer than `best`. */
function nearestOnTheWay(series, start, step, place, toX, toY, best) {
  for (let index = start; index >= 0 && index < series.xs.length; index += step) {
    const away = toX(series.xs[index]) - place.x;
    if (Math.abs(away) > best.distance) break;
    if (series.ys[index] === null) continue;
    const distance = Math.hypot(away, toY(series.ys[index]) - place.y);
    if (distance < best.distance) best = { series, index, distance };
  }
  return best;
}

class Chart {
  /** `describe(point)` gives {title, lines: [[name, text]]} for {series, index}. */
  constructor(label, describe) {
    this.describe = describe;
    this.series = [];
    this.axes = {
      x: { label: '', log: false, text: shortNumber },
      y: { label: '', log: false, text: shortNumber },
    };
    this.view = null;
    this.point = null;
    this.highlight = null;
    this.makeElements(label);
    new ResizeObserver(() => this.resize()).observe(this.canvasHost);
  }

  makeElements(label) {
    this.ring = element('div', { class: 'chart-ring', hidden: true });
    this.tip = element('div', { class: 'chart-tip', hidden: true, 'aria-hidden': 'true' });
    this.canvasHost = element(
      'div',
      {
        class: 'chart',
        tabindex: 0,
        role: 'application',
        'aria-roledescription': 'interactive chart',
        'aria-label':
          `${label}. Left and right arrows follow a series, up and down change the series, ` +
          'plus and minus zoom, shift with an arrow moves the view, zero shows everything.',
        onkeydown: (event) => this.onKey(event),
        onblur: () => this.leave(),
      },
      this.ring,
      this.tip,
    );
    this.element = element('div', { class: 'chart-frame' }, this.canvasHost, this.zoomButtons());
  }

  zoomButtons() {
    const one = (text, label, action) =>
      button(text, action, { 'aria-label': label, title: label });
    return element(
      'div',
      { class: 'chart-buttons', role: 'group', 'aria-label': 'Zoom' },
      one('+', 'Zoom in', () => this.zoom(1 / zoomStep)),
      one('−', 'Zoom out', () => this.zoom(zoomStep)),
      one('←', 'Move left', () => this.pan(-0.2, 0)),
      one('→', 'Move right', () => this.pan(0.2, 0)),
      one('↑', 'Move up', () => this.pan(0, 0.2)),
      one('↓', 'Move down', () => this.pan(0, -0.2)),
      button('Show all', () => this.showAll()),
      element('span', { class: 'muted hint' }, 'Drag to zoom, double-click to show all.'),
    );
  }

  /** Series on other axes: all of them are in view. */
  setAxes(axes, series) {
    Object.assign(this, { axes, series, view: null });
    this.leave();
    this.measure();
    this.rebuild();
  }

  setSeries(series) {
    this.series = series;
    this.leave();
    this.measure();
    this.applyView();
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
        bind: {
          dblclick: () => () => {
            this.showAll();
            return null;
          },
        },
      },
      hooks: {
        draw: [(plot) => this.draw(plot)],
        setSelect: [(plot) => this.zoomToSelection(plot)],
      },
    };
    this.plot = new uPlot(options, [this.shownView().x, [null, null]], this.canvasHost);
    this.follow(this.plot.over);
  }

  scale(key) {
    return { time: false, distr: this.axes[key].log ? 3 : 1, range: () => this.shownView()[key] };
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
        const room = across
          ? plot.bbox.width / devicePixelRatio / 80
          : plot.bbox.height / devicePixelRatio / 45;
        const unit = axis.unit ?? 1;
        const ticks = axis.log ? logTicks : linearTicks;
        return ticks(min / unit, max / unit, Math.max(2, room)).map((tick) => tick * unit);
      },
      filter: (_, splits) => splits,
      values: (_, splits) => splits.map(axis.text),
    };
  }

  measure() {
    const extent = (key, keys, { log, room }) => {
      const whiskers = this.series.map((series) => ({ whisker: series.whiskers?.[key] ?? [] }));
      return extentOf([...this.series, ...whiskers], [...keys, 'whisker'], log, room);
    };
    this.everything = {
      x: extent('x', ['xs'], this.axes.x),
      y: extent('y', ['ys', 'low', 'high'], this.axes.y),
    };
  }

  shownView() {
    return this.view ?? this.everything;
  }

  applyView() {
    const { x, y } = this.shownView();
    this.plot.batch(() => {
      this.plot.setData([x, [null, null]], false);
      this.plot.setScale('x', { min: x[0], max: x[1] });
      this.plot.setScale('y', { min: y[0], max: y[1] });
    });
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
      const half = ((max - min) / 2) * factor;
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

  draw(plot) {
    const paper = paperOf(plot, this.axes);
    const isDimmed = (series) => this.highlight !== null && !this.highlight(series);
    clipped(paper, () =>
      this.series.forEach((series) => drawSeries(paper, series, isDimmed(series))),
    );
    drawCaptions(
      paper,
      this.series.filter((series) => series.caption),
    );
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
    const { toX, toY, box, ratio } = paperOf(this.plot, this.axes);
    const place = { x: box.left + left * ratio, y: box.top + top * ratio };
    const x = this.plot.posToVal(left, 'x');
    let best = { distance: reach * ratio };
    for (const series of this.series) {
      if (series.mute) continue;
      const start = lowerBound(series.xs, x);
      best = nearestOnTheWay(series, start - 1, -1, place, toX, toY, best);
      best = nearestOnTheWay(series, start, 1, place, toX, toY, best);
    }
    return best.series ? { series: best.series, index: best.index } : null;
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
    const inside = Math.min(left, Math.max(0, room - width));
    this.tip.style.transform = `translate(${inside}px, ${top}px)`;
  }

  fillTip({ title, lines }) {
    const rows = lines.map(([name, text]) => [element('dt', {}, name), element('dd', {}, text)]);
    this.tip.replaceChildren(element('strong', {}, title), element('dl', {}, rows));
  }

  // Keys.

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = event.shiftKey
      ? (this.panKeys()[event.key] ?? this.keys()[event.key])
      : this.keys()[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  keys() {
    return {
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      ArrowUp: () => this.changeSeries(-1),
      ArrowDown: () => this.changeSeries(1),
      '+': () => this.zoom(1 / zoomStep),
      '=': () => this.zoom(1 / zoomStep),
      '-': () => this.zoom(zoomStep),
      0: () => this.showAll(),
      Escape: () => this.leave(),
    };
  }

  panKeys() {
    return {
      ArrowLeft: () => this.pan(-0.2, 0),
      ArrowRight: () => this.pan(0.2, 0),
      ArrowUp: () => this.pan(0, 0.2),
      ArrowDown: () => this.pan(0, -0.2),
    };
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
    const audible = this.series.filter(
      (series) => !series.mute && series.ys.some((y) => y !== null),
    );
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
