// The curves of every run: what is drawn, and the panel that says which runs are.

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
  const tables = data.tables.map((table, i) => ({ key: `${i}`, label: table.title,
    runs: [...new Set(table.runs.flat())].sort((a, b) => a - b) }));
  const all = { key: 'all', label: `All ${data.runs.length} runs`, runs: data.runs.map((run) => run.index) };
  return [...tables.filter((group) => group.runs.length > 0), all];
}

function mostHaveEvaluations() {
  return data.runs.filter((run) => run.eval.count >= 3).length * 2 >= data.runs.length;
}

class Curves {
  constructor(host) {
    this.groups = runGroups();
    this.state = { group: this.groups[0].key, kind: mostHaveEvaluations() ? 'eval' : 'train', axis: 'tokens',
      smoothing: 0, colours: 'config', filter: '' };
    this.hiddenRuns = new Set();
    this.hiddenSeeds = new Set();
    this.chart = new Chart('Loss of the runs', (point) => this.describe(point));
    this.status = element('p', { class: 'muted', role: 'status' });
    this.panel = element('div', { class: 'panel-body' });
    host.append(this.controls(), element('div', { class: 'curves' }, this.chart.element, this.panelFrame()), this.status);
    this.log = { x: false, y: this.spansDecades() };
    this.logChecks.y.checked = this.log.y;
    this.regroup();
    this.applyAxes();
  }

  get group() {
    return this.groups.find((group) => group.key === this.state.group);
  }

  // Controls above the chart.

  controls() {
    const set = (key, then) => (value) => {
      this.state[key] = value;
      then();
    };
    this.logChecks = {};
    const log = (key, label) => {
      const check = checkbox(label, false, (checked) => {
        this.log[key] = checked;
        this.applyAxes();
      });
      this.logChecks[key] = check.querySelector('input');
      return check;
    };
    return element('div', { class: 'controls', role: 'group', 'aria-label': 'What the curves show' },
      choice('Runs of', this.groups.map((group) => [group.key, group.label]), this.state.group,
        set('group', () => this.regroup(true))),
      choice('Loss', [['eval', 'Evaluation'], ['train', 'Training'], ['both', 'Both']], this.state.kind,
        set('kind', () => this.update())),
      choice('Against', [['tokens', 'Tokens'], ['seconds', 'Wall time']], this.state.axis,
        set('axis', () => this.applyAxes())),
      choice('Colours by', [['config', 'Configs'], ['seed', 'Seeds'], ['run', 'Runs']], this.state.colours,
        set('colours', () => this.regroup())),
      this.smoothingControl(), log('x', 'Log x'), log('y', 'Log y'));
  }

  smoothingControl() {
    const shown = element('output', {}, '0');
    const slider = element('input', { type: 'range', min: 0, max: 0.99, step: 0.01, value: 0,
      'aria-label': 'Smoothing of training curves' });
    slider.addEventListener('input', () => {
      this.state.smoothing = +slider.value;
      shown.textContent = slider.value;
      this.update();
    });
    return element('label', { class: 'control' }, element('span', {}, 'Smoothing'), element('span', { class: 'slider' }, slider, shown));
  }

  // The panel: runs by config.

  panelFrame() {
    const filter = element('input', { type: 'search', placeholder: 'Filter runs', 'aria-label': 'Filter runs' });
    filter.addEventListener('input', () => {
      this.state.filter = filter.value.toLowerCase();
      this.filterPanel();
    });
    const all = (shown) => () => {
      for (const run of this.group.runs) if (this.matches(run)) this.setRun(run, shown);
      this.update();
    };
    return element('div', { class: 'panel', role: 'group', 'aria-label': 'Shown runs' },
      element('div', { class: 'panel-tools' }, filter, button('All', all(true)), button('None', all(false))), this.panel);
  }

  setRun(index, shown) {
    if (shown) this.hiddenRuns.delete(index);
    else this.hiddenRuns.add(index);
  }

  matches(index) {
    const run = data.runs[index];
    return `${runLabel(run)} ${run.id} ${run.tags.join(' ')}`.toLowerCase().includes(this.state.filter);
  }

  /** A new group has styles and a panel of its own. */
  regroup(showAll = false) {
    const runs = this.group.runs.map((index) => data.runs[index]);
    const keyOf = { config: (run) => run.config, seed: (run) => run.seed, run: (run) => run.id }[this.state.colours];
    const keys = [...new Set(runs.map(keyOf))];
    this.styles = new Map(runs.map((run) => [run.index, styleOf(keys.indexOf(keyOf(run)))]));
    this.fillPanel(runs);
    if (showAll) this.chart.view = null;
    this.update();
  }

  fillPanel(runs) {
    const configs = new Map();
    for (const run of runs) configs.set(run.config, [...configs.get(run.config) ?? [], run]);
    const seeds = [...new Set(runs.map((run) => run.seed))].sort((a, b) => a - b);
    this.configChecks = [];
    this.runChecks = [];
    const entries = [...configs].map(([config, members]) => this.configEntry(config, members));
    this.panel.replaceChildren(...seeds.length > 1 ? [this.seedChecks(seeds)] : [], element('ul', { class: 'runs' }, entries));
    this.filterPanel();
  }

  seedChecks(seeds) {
    const one = (seed) => {
      const check = checkbox(`${seed}`, !this.hiddenSeeds.has(seed), (shown) => {
        if (shown) this.hiddenSeeds.delete(seed);
        else this.hiddenSeeds.add(seed);
        this.update();
      });
      const member = this.group.runs.find((index) => data.runs[index].seed === seed);
      if (this.state.colours === 'seed') check.insertBefore(swatch(this.styles.get(member)), check.lastChild);
      return check;
    };
    return element('div', { class: 'seeds', role: 'group', 'aria-label': 'Seeds' }, element('span', {}, 'Seeds'), seeds.map(one));
  }

  configEntry(config, members) {
    const check = checkbox(config, true, (shown) => {
      for (const run of members) this.setRun(run.index, shown);
      this.update();
    });
    this.configChecks.push({ input: check.querySelector('input'), members });
    if (this.state.colours === 'config') this.addSwatch(check, members[0]);
    this.highlightBy(check, (series) => members.includes(series.run));
    const entry = element('li', {}, check);
    if (members.length > 1) {
      entry.append(...this.runList(members));
    } else {
      if (this.state.colours === 'run') this.addSwatch(check, members[0]);
      entry.dataset.run = members[0].index;
    }
    return entry;
  }

  /** The runs of a config behind a button that shows them. */
  runList(members) {
    const entries = element('ul', { hidden: this.state.colours !== 'run' },
      members.map((run) => element('li', { 'data-run': run.index }, this.runCheck(run))));
    const toggle = button(`${members.length} runs`, () => {
      entries.hidden = !entries.hidden;
      toggle.setAttribute('aria-expanded', `${!entries.hidden}`);
    }, { class: 'button small', 'aria-expanded': `${!entries.hidden}` });
    return [toggle, entries];
  }

  runCheck(run) {
    const check = checkbox(variantLabel(run), true, (shown) => {
      this.setRun(run.index, shown);
      this.update();
    }, { title: run.id });
    this.runChecks.push({ input: check.querySelector('input'), run });
    if (this.state.colours === 'run') this.addSwatch(check, run);
    this.highlightBy(check, (series) => series.run === run);
    return check;
  }

  addSwatch(check, run) {
    check.insertBefore(swatch(this.styles.get(run.index)), check.lastChild);
  }

  /** While a run or config is pointed at in the panel, the others step back. */
  highlightBy(target, test) {
    target.addEventListener('pointerenter', () => this.chart.setHighlight(test));
    target.addEventListener('pointerleave', () => this.chart.setHighlight(null));
    target.addEventListener('focusin', (event) => {
      if (event.target.matches(':focus-visible')) this.chart.setHighlight(test);
    });
    target.addEventListener('focusout', () => this.chart.setHighlight(null));
  }

  filterPanel() {
    for (const one of this.panel.querySelectorAll('[data-run]')) one.hidden = !this.matches(+one.dataset.run);
    for (const entry of this.panel.querySelectorAll('.runs > li')) {
      const inner = [...entry.querySelectorAll('[data-run]')];
      if (inner.length > 0) entry.hidden = inner.every((one) => one.hidden);
    }
  }

  // What is drawn.

  isShown(run) {
    return !this.hiddenRuns.has(run.index) && !this.hiddenSeeds.has(run.seed);
  }

  shownRuns() {
    return this.group.runs.map((index) => data.runs[index]).filter((run) => this.isShown(run));
  }

  update() {
    this.updateChecks();
    const runs = this.shownRuns();
    this.chart.setSeries(runs.flatMap((run) => this.seriesOf(run)));
    const thinned = runs.some((run) => run.recorded > run.train.count);
    this.status.textContent = `${runs.length} of ${this.group.runs.length} runs shown.`
      + (thinned && this.state.kind !== 'eval' ? ' Of long training curves the lowest and the highest loss of every stretch are drawn.' : '');
  }

  updateChecks() {
    for (const { input, members } of this.configChecks) {
      const shown = members.filter((run) => !this.hiddenRuns.has(run.index)).length;
      input.checked = shown > 0;
      input.indeterminate = shown > 0 && shown < members.length;
    }
    for (const { input, run } of this.runChecks) input.checked = !this.hiddenRuns.has(run.index);
  }

  seriesOf(run) {
    const { kind } = this.state;
    return [...kind !== 'eval' ? this.trainingSeries(run) : [], ...kind !== 'train' ? this.evaluationSeries(run) : []];
  }

  trainingSeries(run) {
    if (run.train.count === 0) return [];
    const { xs, ys, places } = onAxis(curveOf(run, 'train'), this.state.axis);
    const style = this.styles.get(run.index);
    const base = { run, kind: 'train', xs, places, style, line: true };
    const beside = this.state.kind === 'both';
    const weight = this.state.smoothing;
    if (weight === 0) return [{ ...base, ys, width: 1.4, alpha: beside ? 0.4 : 1, points: beside ? null : 'last' }];
    return [{ ...base, ys, mute: true, width: 1, alpha: 0.22 },
      { ...base, ys: smoothed(ys, weight), width: beside ? 1.4 : 1.8, alpha: beside ? 0.7 : 1, points: beside ? null : 'last' }];
  }

  evaluationSeries(run) {
    if (run.eval.count === 0) return [];
    const { xs, ys, places } = onAxis(curveOf(run, 'eval'), this.state.axis);
    return [{ run, kind: 'eval', xs, ys, places, style: this.styles.get(run.index), line: true, width: 1.8,
      points: xs.length <= 40 ? 'all' : 'last' }];
  }

  spansDecades() {
    const [min, max] = extentOf(this.shownRuns().flatMap((run) => ['train', 'eval'].map((kind) => ({ ys: curveOf(run, kind).loss }))), 'ys', true);
    return max / min > 4;
  }

  applyAxes() {
    const time = this.state.axis === 'seconds';
    this.chart.series = this.shownRuns().flatMap((run) => this.seriesOf(run));
    this.chart.setAxes({
      x: { label: time ? 'Wall time' : 'Tokens trained on', log: this.log.x, text: time ? durationText : shortNumber },
      y: { label: 'Loss', log: this.log.y, text: axisNumber },
    });
    this.update();
  }

  describe({ series, index }) {
    const { run, kind } = series;
    const curve = curveOf(run, kind);
    const place = series.places[index];
    const isSmoothed = kind === 'train' && this.state.smoothing > 0;
    const lines = [[kind === 'eval' ? 'Evaluation loss' : 'Training loss', lossText(curve.loss[place])]];
    if (isSmoothed) lines.push(['Smoothed', lossText(series.ys[index])]);
    lines.push(['Tokens', shortNumber(curve.tokens[place])]);
    if (curve.seconds[place] !== null) lines.push(['Wall time', durationText(curve.seconds[place])]);
    if (run.status !== 'completed') lines.push(['Run', run.status]);
    return { title: runLabel(run), lines };
  }
}

function showCurves(host) {
  if (data.runs.length === 0) {
    host.append(element('p', {}, 'There are no runs yet: ', element('code', {}, 'forge run --all'), ' makes those of every config.'));
    return;
  }
  host.chart = new Curves(host);
}
