// The panel beside the curves: which runs are drawn, by config, seed and run.

class RunPanel {
  /** `onchange()`: other runs are shown; `onhighlight(test)`: these series are pointed at. */
  constructor(onchange, onhighlight) {
    this.onchange = onchange;
    this.onhighlight = onhighlight;
    this.hiddenRuns = new Set();
    this.hiddenSeeds = new Set();
    this.wanted = '';
    this.body = element('div', { class: 'panel-body' });
    this.element = element(
      'div',
      { class: 'panel', role: 'group', 'aria-label': 'Shown runs' },
      this.tools(),
      this.body,
    );
  }

  isShown(run) {
    return !this.hiddenRuns.has(run) && !this.hiddenSeeds.has(run.seed);
  }

  tools() {
    const filter = element('input', {
      type: 'search',
      placeholder: 'Filter runs',
      'aria-label': 'Filter runs',
    });
    filter.addEventListener('input', () => {
      this.wanted = filter.value.toLowerCase();
      this.applyFilter();
    });
    const all = (shown) => () =>
      this.set(
        this.runs.filter((run) => this.matches(run)),
        shown,
      );
    return element(
      'div',
      { class: 'panel-tools' },
      filter,
      button('All', all(true)),
      button('None', all(false)),
    );
  }

  set(runs, shown) {
    for (const run of runs) {
      if (shown) this.hiddenRuns.delete(run);
      else this.hiddenRuns.add(run);
    }
    this.onchange();
  }

  matches(run) {
    return `${runLabel(run)} ${run.id} ${run.tags.join(' ')}`.toLowerCase().includes(this.wanted);
  }

  /** `colours` says which entries have samples: "config", "seed" or "run". */
  fill(runs, styles, colours) {
    Object.assign(this, { runs, styles, colours, configChecks: [], runChecks: [] });
    const configs = new Map();
    for (const run of runs) configs.set(run.config, [...(configs.get(run.config) ?? []), run]);
    const seeds = [...new Set(runs.map((run) => run.seed))].sort((a, b) => a - b);
    const entries = [...configs].map(([config, members]) => this.configEntry(config, members));
    this.body.replaceChildren(
      ...(seeds.length > 1 ? [this.seedChecks(seeds)] : []),
      element('ul', { class: 'runs' }, entries),
    );
    this.applyFilter();
    this.update();
  }

  seedChecks(seeds) {
    const one = (seed) => {
      const check = checkbox(`${seed}`, !this.hiddenSeeds.has(seed), (shown) => {
        if (shown) this.hiddenSeeds.delete(seed);
        else this.hiddenSeeds.add(seed);
        this.onchange();
      });
      if (this.colours === 'seed')
        this.addSwatch(
          check,
          this.runs.find((run) => run.seed === seed),
        );
      return check;
    };
    return element(
      'div',
      { class: 'seeds', role: 'group', 'aria-label': 'Seeds' },
      element('span', {}, 'Seeds'),
      seeds.map(one),
    );
  }

  configEntry(config, members) {
    const check = checkbox(config, true, (shown) => this.set(members, shown));
    this.configChecks.push({ input: check.querySelector('input'), members });
    const isAlone = members.length === 1;
    if (this.colours === 'config' || (this.colours === 'run' && isAlone))
      this.addSwatch(check, members[0]);
    this.highlightBy(check, members);
    const entry = element('li', {}, check, isAlone ? [] : this.runList(members));
    entry.runs = members;
    return entry;
  }

  /** The runs of a config behind a button that shows them. */
  runList(members) {
    const entries = element(
      'ul',
      { hidden: this.colours !== 'run' },
      members.map((run) => this.runEntry(run)),
    );
    const toggle = button(
      `${members.length} runs`,
      () => {
        entries.hidden = !entries.hidden;
        toggle.setAttribute('aria-expanded', `${!entries.hidden}`);
      },
      { class: 'button small', 'aria-expanded': `${!entries.hidden}` },
    );
    return [toggle, entries];
  }

  runEntry(run) {
    const check = checkbox(variantLabel(run), true, (shown) => this.set([run], shown), {
      title: run.id,
    });
    this.runChecks.push({ input: check.querySelector('input'), run });
    if (this.colours === 'run') this.addSwatch(check, run);
    this.highlightBy(check, [run]);
    const entry = element('li', {}, check);
    entry.runs = [run];
    return entry;
  }

  addSwatch(check, run) {
    check.insertBefore(swatch(this.styles.get(run)), check.lastChild);
  }

  /** While runs are pointed at in the panel, the others step back. */
  highlightBy(target, runs) {
    const highlight = () =>
      this.onhighlight((series) => series.runs.some((run) => runs.includes(run)));
    target.addEventListener('pointerenter', highlight);
    target.addEventListener('pointerleave', () => this.onhighlight(null));
    target.addEventListener('focusin', (event) => {
      if (event.target.matches(':focus-visible')) highlight();
    });
    target.addEventListener('focusout', () => this.onhighlight(null));
  }

  applyFilter() {
    for (const entry of this.body.querySelectorAll('.runs li'))
      entry.hidden = !entry.runs.some((run) => this.matches(run));
  }

  /** The checks as the runs are. */
  update() {
    for (const { input, members } of this.configChecks) {
      const shown = members.filter((run) => !this.hiddenRuns.has(run)).length;
      input.checked = shown > 0;
      input.indeterminate = shown > 0 && shown < members.length;
    }
    for (const { input, run } of this.runChecks) input.checked = !this.hiddenRuns.has(run);
  }
}
