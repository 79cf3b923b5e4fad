// Two figures of a table against each other, and which rows others beat in both.

const isAsGood = (a, b, better) => (better === 'lower' ? a <= b : a >= b);

/** Whether `a` is at least as good as `b` in both figures and better in one. */
function dominates(a, b, betterX, betterY) {
  return isAsGood(a.x, b.x, betterX) && isAsGood(a.y, b.y, betterY) && (a.x !== b.x || a.y !== b.y);
}

/** The steps between the points of the front: beyond them nothing was measured. */
function frontSteps(front, betterX, betterY) {
  const worse = (a, b, better) => (better === 'lower' ? Math.max(a, b) : Math.min(a, b));
  const sorted = [...front].sort((a, b) => a.x - b.x);
  const steps = [];
  sorted.forEach((point, i) => {
    const last = sorted[i - 1];
    if (last)
      steps.push({ x: worse(last.x, point.x, betterX), y: worse(last.y, point.y, betterY) });
    steps.push(point);
  });
  return steps;
}

/** Columns of figures of which at least one is there. */
function figureColumns(table) {
  return table.columns
    .map((column, i) => ({ ...column, place: i }))
    .filter(
      ({ number, place }) =>
        number && table.rows.some((row) => typeof row[place]?.value === 'number'),
    );
}

/** Numbers of an axis as the table writes the column; bytes in multiples of `unit`. */
function axisText(column, unit) {
  if (column.unit === 'share') return (value) => `${+(100 * value).toPrecision(4)} %`;
  if (column.unit === 'bytes')
    return (value) => `${+(value / unit.size).toPrecision(4)} ${unit.name}`;
  return (value) => (Math.abs(value) >= 1000 ? shortNumber(value) : axisNumber(value));
}

class Tradeoff {
  constructor(host, tables) {
    this.tables = tables;
    this.chart = new Chart('Two figures of the table against each other', (point) =>
      this.describe(point),
    );
    this.controls = element('div', {
      class: 'controls',
      role: 'group',
      'aria-label': 'What the plot shows',
    });
    this.findings = element('div', { class: 'findings' });
    host.append(this.controls, this.chart.element, this.findings);
    this.choose(0);
  }

  choose(index) {
    this.table = this.tables[index];
    this.columns = figureColumns(this.table);
    this.y = this.columns.find((column) => !column.cost && column.better) ?? this.columns[0];
    const others = this.columns.filter((column) => column !== this.y);
    this.x =
      others.find((column) => column.cost && column.better === 'higher') ??
      others.find((column) => column.cost) ??
      others[0];
    this.better = { x: this.x.better || 'lower', y: this.y.better || 'lower' };
    this.showControls(index);
    this.update();
  }

  showControls(index) {
    const redo = () => {
      this.showControls(index);
      this.update();
    };
    const axis = (key, label) =>
      choice(
        label,
        this.columns.map((column) => [`${column.place}`, column.title]),
        `${this[key].place}`,
        (place) => {
          this[key] = this.columns.find((column) => column.place === +place);
          this.better[key] = this[key].better || 'lower';
          redo();
        },
      );
    const direction = (key, label) =>
      choice(
        label,
        [
          ['lower', 'lower'],
          ['higher', 'higher'],
        ],
        this.better[key],
        (better) => {
          this.better[key] = better;
          redo();
        },
      );
    const tables = choice(
      'Table',
      this.tables.map((table, i) => [`${i}`, table.title]),
      `${index}`,
      (i) => this.choose(+i),
    );
    const focused = document.activeElement?.closest?.('label')?.firstChild?.textContent;
    this.controls.replaceChildren(
      tables,
      axis('y', 'Quality'),
      direction('y', 'Better quality is'),
      axis('x', 'Cost'),
      direction('x', 'Better cost is'),
    );
    if (focused)
      [...this.controls.children]
        .find((one) => one.firstChild.textContent === focused)
        ?.lastChild.focus();
  }

  points() {
    const seen = new Map();
    return this.table.rows.map((row, i) => {
      const origin = this.table.origins[i];
      const config = data.runs[origin.runs[0]]?.config;
      const variant = seen.get(config) ?? 0;
      seen.set(config, variant + 1);
      const doubts = [this.x.doubts[i], this.y.doubts[i]].filter(Boolean);
      return {
        name: origin.name,
        breaks: [...new Set([...origin.breaks, ...doubts])],
        row,
        place: i,
        style: config === undefined ? styleOf(i) : styleOfConfig(config, variant),
        x: row[this.x.place]?.value ?? null,
        y: row[this.y.place]?.value ?? null,
      };
    });
  }

  update() {
    const points = this.points();
    this.shown = points.filter((point) => point.x !== null && point.y !== null);
    const compared = this.shown.filter((point) => point.breaks.length === 0);
    for (const point of compared) {
      point.beatenBy = compared.filter((other) =>
        dominates(other, point, this.better.x, this.better.y),
      );
    }
    const front = compared.filter((point) => point.beatenBy.length === 0);
    const label = (key) => `${this[key].title} (${this.better[key]} is better)`;
    const axis = (key) => ({
      label: label(key),
      log: false,
      room: 0.12,
      unit: this.unitOf(key).size,
      text: axisText(this[key], this.unitOf(key)),
    });
    this.chart.setAxes({ x: axis('x'), y: axis('y') }, [
      this.frontSeries(front),
      ...this.shown.map((point) => this.pointSeries(point)),
    ]);
    this.showFindings(front, points);
  }

  frontSeries(front) {
    const steps = frontSteps(front, this.better.x, this.better.y);
    return {
      xs: steps.map((step) => step.x),
      ys: steps.map((step) => step.y),
      mute: true,
      line: true,
      width: 1.5,
      alpha: 0.7,
      style: { hue: null, dash: [4, 4], marker: 'circle' },
    };
  }

  /** The unit of an axis: of bytes that of the largest figure. */
  unitOf(key) {
    if (this[key].unit !== 'bytes') return { name: '', size: 1 };
    return memoryUnit(Math.max(0, ...this.shown.map((point) => point[key])));
  }

  hasWhiskers() {
    return [...this.x.intervals, ...this.y.intervals].some((interval) => interval !== null);
  }

  pointSeries(point) {
    const crowded = this.shown.length > 24;
    return {
      point,
      xs: [point.x],
      ys: [point.y],
      style: point.style,
      points: 'all',
      radius: 5.5,
      whiskers: { x: this.x.intervals[point.place], y: this.y.intervals[point.place] },
      hollow: point.beatenBy?.length !== 0,
      caption: crowded ? null : point.name,
    };
  }

  describe({ series }) {
    const { point } = series;
    const lines = [
      [this.y.title, cellText(point.row[this.y.place])],
      [this.x.title, cellText(point.row[this.x.place])],
    ];
    if (!point.beatenBy) lines.push(['Not compared', point.breaks.join('; ')]);
    else if (point.beatenBy.length > 0) lines.push(['Dominated by', this.beatenBy(point)]);
    else lines.push(['On the front', 'yes']);
    return { title: point.name, lines };
  }

  /** The rows of the front that beat a point: one always does. */
  beatenBy(point) {
    return point.beatenBy
      .filter((other) => other.beatenBy.length === 0)
      .map((other) => other.name)
      .join(', ');
  }

  showFindings(front, points) {
    const dominated = this.shown.filter((point) => point.beatenBy?.length > 0);
    const apart = this.shown.filter((point) => !point.beatenBy);
    const lacking = points.filter((point) => point.x === null || point.y === null);
    const entry = (point, text) =>
      element('li', {}, swatch(point.style, false), element('strong', {}, point.name), text);
    const part = (title, entries) =>
      entries.length > 0
        ? [element('h3', {}, title), element('ul', { class: 'plain' }, entries)]
        : [];
    this.findings.replaceChildren(
      ...part(
        'On the front: no row is better in one figure without being worse in the other',
        front.map((point) => entry(point, '')),
      ),
      ...part(
        'Dominated',
        dominated.map((point) => entry(point, ` by ${this.beatenBy(point)}`)),
      ),
      ...part(
        'Not compared with the others',
        apart.map((point) => entry(point, `: ${point.breaks.join('; ')}`)),
      ),
      ...part(
        'Without both figures',
        lacking.map((point) => entry(point, '')),
      ),
      element(
        'p',
        { class: 'muted' },
        (this.hasWhiskers() ? 'Whiskers are 95 % intervals of the mean over seeds. ' : '') +
          'The front takes figures as they are and knows nothing of noise: ' +
          'whether a difference stands is said by the table and its claims.',
      ),
    );
  }
}

function showTradeoff(host) {
  const tables = data.tables.filter((table) => figureColumns(table).length >= 2);
  if (tables.length === 0) {
    host.append(element('p', {}, 'No table has two columns of figures with runs behind them yet.'));
    return;
  }
  host.chart = new Tradeoff(host, tables);
}
