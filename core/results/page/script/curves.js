// The curves of every run, or of all seeds of a config together.

/** The exponential moving average as far as it is filled: gaps stay gaps. */
function smoothed(values, weight) {
  if (weight === 0) return values;
  let mean = 0;
  let filled = 0;
  return values.map((value) => {
    if (value === null) return null;
    mean = weight * mean + (1 - weight) * value;
    filled = weight * filled + (1 - weight);
    return mean / filled;
  });
}

/** Points of which the x is known. */
function onAxis(curve, axis) {
  const xs = [];
  const ys = [];
  const places = [];
  curve[axis].forEach((x, i) => {
    if (x === null) return;
    xs.push(x);
    ys.push(curve.loss[i]);
    places.push(i);
  });
  return { xs, ys, places };
}

/** Which runs stand together: those of a table, or all. */
function runGroups() {
  const tables = data.tables.map((table, i) => ({
    key: `${i}`,
    label: table.title,
    runs: [...new Set(table.origins.flatMap((origin) => origin.runs))].sort((a, b) => a - b),
  }));
  const all = {
    key: 'all',
    label: `All ${data.runs.length} runs`,
    runs: data.runs.map((run) => run.index),
  };
  return [...tables.filter((group) => group.runs.length > 0), all];
}

const lossName = (kind) => (kind === 'eval' ? 'evaluation loss' : 'training loss');

function mostHaveEvaluations() {
  return data.runs.filter((run) => run.eval.count >= 3).length * 2 >= data.runs.length;
}

/** The y of a curve at an x between two of its points; null outside of it and in gaps. */
function valueAt({ xs, ys }, x) {
  const right = lowerBound(xs, x);
  if (right === xs.length) return null;
  if (xs[right] === x) return ys[right];
  if (right === 0 || ys[right] === null || ys[right - 1] === null) return null;
  const share = (x - xs[right - 1]) / (xs[right] - xs[right - 1]);
  return ys[right - 1] + share * (ys[right] - ys[right - 1]);
}

/**
 * Mean, lowest and highest of several curves at each x of the longest. Where one of them has ended,
 * or its loss is no number, there is none: the others alone are not what the config does.
 */
function meanCurve(curves) {
  const longest = curves.reduce((a, b) => (b.xs.length > a.xs.length ? b : a));
  const mean = { ...longest, ys: [], low: [], high: [], seeds: curves.length };
  for (const x of longest.xs) {
    const values = curves.map((curve) => valueAt(curve, x));
    const all = values.every((value) => value !== null);
    mean.ys.push(all ? values.reduce((sum, value) => sum + value, 0) / values.length : null);
    mean.low.push(all ? Math.min(...values) : null);
    mean.high.push(all ? Math.max(...values) : null);
  }
  return mean;
}

const runsInTables = new Set(
  data.tables.flatMap((table) => table.origins.flatMap((origin) => origin.runs)),
);

/** One run of each seed: of repeated ones that which a table counts, else the first completed. */
function oneOfEachSeed(runs) {
  const rank = (run) => (runsInTables.has(run.index) ? 2 : run.status === 'completed' ? 1 : 0);
  const bySeed = new Map();
  for (const run of runs) {
    const other = bySeed.get(run.seed);
    if (!other || rank(run) > rank(other)) bySeed.set(run.seed, run);
  }
  return [...bySeed.values()];
}

class Curves {
  constructor(host) {
    this.groups = runGroups();
    this.state = {
      group: this.groups[0].key,
      kind: mostHaveEvaluations() ? 'eval' : 'train',
      axis: 'tokens',
      seeds: 'each',
      smoothing: 0,
      colours: 'config',
    };
    this.chart = new Chart('Loss of the runs', (point) => this.describe(point));
    this.panel = new RunPanel(
      () => this.update(),
      (test) => this.chart.setHighlight(test),
    );
    this.status = element('p', { class: 'muted', role: 'status' });
    host.append(
      this.controls(),
      element('div', { class: 'curves' }, this.chart.element, this.panel.element),
      this.status,
    );
    this.regroup();
    this.log = { x: false, y: this.spansDecades() };
    this.logChecks.y.checked = this.log.y;
    this.applyAxes();
  }

  get group() {
    return this.groups.find((group) => group.key === this.state.group);
  }

  // Controls above the chart.

  controls() {
    const one = (label, key, options, then) =>
      choice(label, options, this.state[key], (value) => {
        this.state[key] = value;
        then();
      });
    return element(
      'div',
      { class: 'controls', role: 'group', 'aria-label': 'What the curves show' },
      one(
        'Runs of',
        'group',
        this.groups.map((group) => [group.key, group.label]),
        () => this.regroup(true),
      ),
      one(
        'Loss',
        'kind',
        [
          ['eval', 'Evaluation'],
          ['train', 'Training'],
          ['both', 'Both'],
        ],
        () => this.update(),
      ),
      one(
        'Against',
        'axis',
        [
          ['tokens', 'Tokens'],
          ['seconds', 'Wall time'],
        ],
        () => this.applyAxes(),
      ),
      one(
        'Seeds',
        'seeds',
        [
          ['each', 'Each'],
          ['mean', 'Mean and range'],
        ],
        () => this.update(),
      ),
      one(
        'Colours by',
        'colours',
        [
          ['config', 'Configs'],
          ['seed', 'Seeds'],
          ['run', 'Runs'],
        ],
        () => this.regroup(),
      ),
      this.smoothingControl(),
      this.logControls(),
    );
  }

  logControls() {
    this.logChecks = {};
    return ['x', 'y'].map((key) => {
      const check = checkbox(`Log ${key}`, false, (checked) => {
        this.log[key] = checked;
        this.applyAxes();
      });
      this.logChecks[key] = check.querySelector('input');
      return check;
    });
  }

  smoothingControl() {
    const shown = element('output', {}, '0');
    const slider = element('input', {
      type: 'range',
      min: 0,
      max: 0.99,
      step: 0.01,
      value: 0,
      'aria-label': 'Smoothing of training curves',
    });
    slider.addEventListener('input', () => {
      this.state.smoothing = +slider.value;
      shown.textContent = slider.value;
      this.update();
    });
    return element(
      'label',
      { class: 'control' },
      element('span', {}, 'Smoothing'),
      element('span', { class: 'slider' }, slider, shown),
    );
  }

  /** A new group has styles and a panel of its own. */
  regroup(showAll = false) {
    const runs = this.group.runs.map((index) => data.runs[index]);
    const keyOf = { config: (run) => run.config, seed: (run) => run.seed, run: (run) => run.id }[
      this.state.colours
    ];
    const keys = [...new Set(runs.map(keyOf))];
    const style =
      this.state.colours === 'config'
        ? (run) => styleOfConfig(run.config)
        : (run) => styleOf(keys.indexOf(keyOf(run)));
    this.styles = new Map(runs.map((run) => [run, style(run)]));
    this.panel.fill(runs, this.styles, this.state.colours);
    if (showAll) this.chart.view = null;
    if (this.chart.plot) this.update();
  }

  // What is drawn.

  shownRuns() {
    return this.group.runs
      .map((index) => data.runs[index])
      .filter((run) => this.panel.isShown(run));
  }

  /** Runs whose curves are drawn as one: all seeds of a config, where means are asked for. */
  bundles(runs) {
    if (this.state.seeds === 'each') return runs.map((run) => [run]);
    const bundles = new Map();
    for (const run of runs) {
      const key = `${run.config} ${run.settings}`;
      bundles.set(key, [...(bundles.get(key) ?? []), run]);
    }
    return [...bundles.values()].map(oneOfEachSeed);
  }

  allSeries() {
    return this.bundles(this.shownRuns()).flatMap((runs) => this.seriesOf(runs));
  }

  update() {
    this.chart.setSeries(this.allSeries());
    this.tellShown();
  }

  tellShown() {
    this.panel.update();
    const runs = this.shownRuns();
    const thinned =
      this.state.kind !== 'eval' && runs.some((run) => run.recorded > run.train.count);
    this.status.textContent = [
      `${runs.length} of ${this.group.runs.length} runs shown.`,
      this.state.seeds === 'mean'
        ? 'Lines are means over the seeds of a config, each counted once, as far as all of them go; ' +
          'bands go from the lowest to the highest.'
        : '',
      this.tellWithoutLosses(runs),
      thinned
        ? 'Of long training curves the lowest and the highest loss of every stretch are drawn.'
        : '',
      ...warningsOf(runs).map((warning) => `${warning}.`),
    ].join(' ');
  }

  /** Runs that have not begun, or failed before their first loss, are in no mean. */
  tellWithoutLosses(runs) {
    const kind = this.state.kind === 'train' ? 'train' : 'eval';
    const count = runs.filter((run) => run[kind].count === 0).length;
    if (this.state.seeds !== 'mean' || count === 0) return '';
    return `${count} ${count === 1 ? 'run' : 'runs'} without losses ${count === 1 ? 'is' : 'are'} in no mean.`;
  }

  seriesOf(runs) {
    const { kind } = this.state;
    return [
      ...(kind !== 'eval' ? this.trainingSeries(runs) : []),
      ...(kind !== 'train' ? this.evaluationSeries(runs) : []),
    ];
  }

  /** The curves of one kind that have points, by the chosen axis. */
  curvesOf(runs, kind) {
    return runs
      .filter((run) => run[kind].count > 0)
      .map((run) => onAxis(curveOf(run, kind), this.state.axis));
  }

  together(curves) {
    return curves.length > 1 ? meanCurve(curves) : curves[0];
  }

  trainingSeries(runs) {
    const curves = this.curvesOf(runs, 'train');
    if (curves.length === 0) return [];
    const weight = this.state.smoothing;
    const beside = this.state.kind === 'both';
    const base = { runs, kind: 'train', style: this.styles.get(runs[0]), line: true };
    const curve = this.together(curves.map((one) => ({ ...one, ys: smoothed(one.ys, weight) })));
    const shown = {
      ...base,
      ...curve,
      width: weight > 0 ? 1.8 : 1.4,
      alpha: beside ? 0.5 : 1,
      points: beside ? null : 'last',
    };
    if (weight === 0 || curves.length > 1) return [shown];
    return [{ ...base, ...curves[0], mute: true, width: 1, alpha: 0.22 }, shown];
  }

  evaluationSeries(runs) {
    const curves = this.curvesOf(runs, 'eval');
    if (curves.length === 0) return [];
    const curve = this.together(curves);
    return [
      {
        runs,
        kind: 'eval',
        ...curve,
        style: this.styles.get(runs[0]),
        line: true,
        width: 1.8,
        points: curve.xs.length <= 40 ? 'all' : 'last',
      },
    ];
  }

  spansDecades() {
    const losses = this.shownRuns().flatMap((run) =>
      ['train', 'eval'].map((kind) => ({ ys: curveOf(run, kind).loss })),
    );
    const [min, max] = extentOf(losses, ['ys'], true);
    return max / min > 4;
  }

  applyAxes() {
    const time = this.state.axis === 'seconds';
    this.chart.setAxes(
      {
        x: {
          label: time ? 'Wall time' : 'Tokens trained on',
          log: this.log.x,
          text: time ? durationText : shortNumber,
        },
        y: { label: 'Loss', log: this.log.y, text: axisNumber },
      },
      this.allSeries(),
    );
    this.tellShown();
  }

  // What is said of a point.

  describe({ series, index }) {
    return series.seeds ? this.describeMean(series, index) : this.describeRun(series, index);
  }

  describeMean({ runs, kind, xs, ys, low, high, seeds }, index) {
    const along =
      this.state.axis === 'seconds'
        ? ['Wall time', durationText(xs[index])]
        : ['Tokens', shortNumber(xs[index])];
    return {
      title: [runs[0].config, variations.get(runs[0].settings)].filter(Boolean).join(' · '),
      lines: [
        [`Mean ${lossName(kind)}`, lossText(ys[index])],
        ['Range', `${lossText(low[index])} to ${lossText(high[index])}`],
        ['Seeds', `${seeds}`],
        along,
      ],
    };
  }

  describeRun({ runs: [run], kind, ys, places }, index) {
    const curve = curveOf(run, kind);
    const place = places[index];
    const name = lossName(kind);
    const lines = [[name[0].toUpperCase() + name.slice(1), lossText(curve.loss[place])]];
    if (kind === 'train' && this.state.smoothing > 0) lines.push(['Smoothed', lossText(ys[index])]);
    if (curve.tokens[place] !== null) lines.push(['Tokens', shortNumber(curve.tokens[place])]);
    if (curve.seconds[place] !== null)
      lines.push(['Wall time', durationText(curve.seconds[place])]);
    if (run.status !== 'completed') lines.push(['Run', run.status]);
    if (run.warning) lines.push(['Warning', run.warning]);
    return { title: runLabel(run), lines };
  }
}

function showCurves(host) {
  if (data.runs.length === 0) {
    host.append(
      element(
        'p',
        {},
        'There are no runs yet: ',
        element('code', {}, 'forge run --all'),
        ' makes those of every config.',
      ),
    );
    return;
  }
  host.chart = new Curves(host);
}
